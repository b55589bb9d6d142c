"""What the store refuses to write.

Source: specification of MemoryRecall, sections 7 (proof, confidence) and 13 (trust).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from comis_eval.errors import LaunderingError, StoreError
from comis_eval.types import Memory, MemoryType, TrustLevel

LARGEST_INTEGER = 2**53 - 1
"""Beyond it a JSON number is no longer exact."""

_INTEGERS = ("created_at", "occurred_at", "expires_at", "updated_at", "proof_count", "version")
_NUMBERS = ("confidence", "relevance", "importance")


def check_values(memory: Memory) -> None:
    """Refuse a memory that could not be read back as it is, or that no formula can take.

    Raises:
        StoreError: If the id is empty, the content blank, the trust level or type not one
            of theirs, a time or count not an integer JSON can hold, the proof count
            negative, a number not finite, the confidence outside [0, 1], or a text not
            Unicode.
    """
    if not isinstance(memory.id, str) or not memory.id:
        raise StoreError(f"memory id is {memory.id!r}; it must be a non-empty string")
    if not memory.content.strip():
        raise _refused(memory, "content", "is blank; say what is remembered, or leave it out")
    if not isinstance(memory.trust_level, TrustLevel):
        raise _refused(
            memory, "trustLevel", f"is {memory.trust_level!r}; it must be {_any_of(TrustLevel)}"
        )
    if not isinstance(memory.memory_type, MemoryType):
        raise _refused(
            memory, "memoryType", f"is {memory.memory_type!r}; it must be {_any_of(MemoryType)}"
        )
    if memory.created_at is None:
        raise _refused(memory, "createdAt", "is missing; give milliseconds since 1970 UTC")
    _check_integers(memory)
    _check_numbers(memory)
    _check_texts(memory)


def check_content(memory_id: str, content: str) -> None:
    """Refuse new content that is blank or not Unicode.

    Raises:
        StoreError: If it is.
    """
    if not content.strip():
        raise StoreError(f"memory {memory_id!r}: content is blank; delete the memory instead")
    _check_unicode(memory_id, content)


def check_trust(memories: Iterable[Memory], trust: Mapping[str, TrustLevel]) -> None:
    """Refuse to launder: a derived memory is trusted at most like its least trusted source.

    Args:
        memories: What is to be written.
        trust: Trust of every memory that is written or in the store, by id.

    Raises:
        LaunderingError: If a memory claims more trust than that.
        StoreError: If a source is unknown.
    """
    for memory in memories:
        if not memory.source_ids:
            continue
        unknown = [source for source in memory.source_ids if source not in trust]
        if unknown:
            raise _refused(
                memory,
                "sourceIds",
                f"names {', '.join(map(repr, unknown))}, which is neither in the store nor "
                "being added; add it first or together",
            )
        least = min((trust[source] for source in memory.source_ids), key=lambda level: level.rank)
        if memory.trust_level.rank > least.rank:
            raise LaunderingError(
                f"memory {memory.id!r} claims trust {memory.trust_level.value!r}, but its least "
                f"trusted source is {least.value!r}; a derived memory has at most the trust of "
                f"its sources, so give it {least.value!r} or drop that source"
            )


def _check_integers(memory: Memory) -> None:
    for name in _INTEGERS:
        value = getattr(memory, name)
        if value is None:
            continue
        if type(value) is not int or abs(value) > LARGEST_INTEGER:
            raise _refused(
                memory, _camel(name), f"is {value!r}; it must be an integer within +-(2^53 - 1)"
            )
    if memory.proof_count is not None and memory.proof_count < 0:
        raise _refused(memory, "proofCount", f"is {memory.proof_count}; it must be >= 0")
    if memory.version is not None and memory.version < 1:
        raise _refused(memory, "version", f"is {memory.version}; it must be >= 1")


def _check_numbers(memory: Memory) -> None:
    for name in _NUMBERS:
        value = getattr(memory, name)
        if value is None:
            continue
        if type(value) not in (int, float) or not abs(value) <= LARGEST_INTEGER:
            raise _refused(memory, name, f"is {value!r}; it must be a finite number")
    if memory.confidence is not None and not 0 <= memory.confidence <= 1:
        raise _refused(memory, "confidence", f"is {memory.confidence!r}; it must be in [0, 1]")


def _check_texts(memory: Memory) -> None:
    texts = (
        *memory.tenancy,
        memory.id,
        memory.content,
        *memory.source,
        memory.source_type,
        memory.taint_level,
        *memory.source_ids,
        *memory.entities,
        *memory.tags,
        memory.key,
        memory.scope,
        memory.project_id,
        memory.created_by,
        memory.author_type,
        memory.status,
        memory.duplicate_of,
    )
    _check_unicode(memory.id, "".join([text for text in texts if text is not None]))


def _check_unicode(memory_id: str, text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise StoreError(
            f"memory {memory_id!r}: its text holds {text[error.start]!r}, half of a surrogate "
            "pair, which UTF-8 cannot store; repair it, or replace it by U+FFFD"
        ) from error


def _refused(memory: Memory, field: str, why: str) -> StoreError:
    return StoreError(f"memory {memory.id!r}: {field} {why}")


def _any_of(choices: type[TrustLevel] | type[MemoryType]) -> str:
    return ", ".join(choices)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
