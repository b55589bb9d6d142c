import pytest

from comis_eval.datasets import Policy, ScopeRule
from comis_eval.types import Memory, Query, Tenancy, TrustLevel

QUERY = Query(id="q", text="t", now=0, tenancy=Tenancy("acme", "ann"))


def memory(tenant="acme", agent="ann", **changes):
    known = {"id": "m", "content": "c", "trust_level": TrustLevel.LEARNED, "created_at": 0}
    return Memory(**known | changes, tenancy=Tenancy(tenant, agent))


@pytest.mark.parametrize(
    ("seen", "by_tenancy", "by_tenant"),
    [
        (memory(), True, True),
        (memory(agent="bob"), False, True),
        (memory(tenant="other"), False, False),
        (memory(scope="agent"), True, True),
        (memory(scope="agent", agent="bob"), False, False),
        (memory(scope="agent", created_by="bob"), False, False),
        (memory(scope="agent", agent="bob", created_by="ann"), False, True),
        (memory(scope="workspace", agent="bob"), False, True),
    ],
)
def test_scope_rules(seen, by_tenancy, by_tenant):
    assert Policy(scope=ScopeRule.TENANCY).shows(seen, QUERY) is by_tenancy
    assert Policy(scope=ScopeRule.TENANT).shows(seen, QUERY) is by_tenant


def test_by_default_external_memories_are_not_allowed():
    policy = Policy()
    assert policy.trusts(memory())
    assert policy.trusts(memory(trust_level=TrustLevel.SYSTEM))
    assert not policy.trusts(memory(trust_level=TrustLevel.EXTERNAL))
