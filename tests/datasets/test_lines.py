"""Reading JSON strictly, and in time."""

import time

import pytest

from comis_eval.datasets.lines import UnreadableError, decode_json


def test_a_key_that_is_repeated_behind_many_others_is_found_in_one_pass():
    keys = [f'"k{number}":0' for number in range(50_000)]
    start = time.process_time()
    with pytest.raises(UnreadableError, match="key 'z' stands twice"):
        decode_json("{" + ",".join([*keys, '"z":0', '"z":0']) + "}")
    assert time.process_time() - start < 3
