"""The server against whoever is not its page: by hand, byte for byte."""

import errno
import http.client
import json
import os
import socket

import pytest

from comis_eval.errors import JudgeError
from comis_eval.judge.journal import Act, read_journal
from comis_eval.judge.page import document
from comis_eval.judge.server import MAX_BODY_BYTES, JudgeServer, running
from comis_eval.judge.shown import GUIDELINE
from tests.judge.small import session

ACT = {"act": "grade", "turn": 0, "grade": 2}


@pytest.fixture
def server(tmp_path):
    with session(tmp_path) as opened:
        page = document(judge="ada", guideline=GUIDELINE)
        made = JudgeServer(opened, page, agreement=lambda: {"head": [], "rows": []})
        with running(made):
            yield made


def headers(server, **changed):
    """What the page itself sends; None leaves a header out."""
    sent = {
        "Host": server.host,
        "Origin": f"http://{server.host}",
        "Sec-Fetch-Site": "same-origin",
        "X-Comis-Token": server.token,
        "Content-Type": "application/json",
    }
    sent |= {name.replace("_", "-"): value for name, value in changed.items()}
    return {name: value for name, value in sent.items() if value is not None}


def ask(server, method, path, body=None, **changed):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        sent = headers(server, **changed)
        raw = json.dumps(body).encode() if isinstance(body, dict) else body
        if raw is not None and "Content-Length" not in sent:
            sent["Content-Length"] = str(len(raw))
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(raw)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def entries(server):
    return read_journal(server.session.journal.path).entries


def test_the_page_may_ask_and_act(server):
    status, _, body = ask(server, "GET", "/api/state")
    told = json.loads(body)
    assert (status, told["graded"], told["total"], told["turn"]) == (200, 0, 6, 0)
    status, _, body = ask(server, "POST", "/api/act", ACT)
    assert (status, json.loads(body)["graded"]) == (200, 1)
    assert [(e.act, e.grade) for e in entries(server)] == [(Act.GRADE, 2)]
    assert ask(server, "GET", "/api/agreement")[0] == 200


def test_it_is_bound_to_loopback_alone(server):
    assert server.server_address[0] == "127.0.0.1"


def test_no_name_server_is_asked(tmp_path, monkeypatch):
    def asked(*_):
        raise AssertionError("a name was looked up")

    monkeypatch.setattr(socket, "getfqdn", asked)
    with session(tmp_path) as opened:
        JudgeServer(opened, document(judge="ada", guideline=""), agreement=dict).server_close()


def test_the_token_is_long_and_another_each_time(server, tmp_path):
    with session(tmp_path, "bob") as opened:
        other = JudgeServer(opened, server.page, agreement=dict)
        other.server_close()
    assert len(server.token) >= 43
    assert other.token != server.token
    assert server.url == f"http://127.0.0.1:{server.server_port}/#token={server.token}"


def test_the_address_sends_the_token_to_nobody(server):
    """It stands behind #, and the page without it holds no data."""
    status, _, body = ask(
        server, "GET", "/", X_Comis_Token=None, Origin=None, Sec_Fetch_Site="none"
    )
    assert status == 200
    text = body.decode()
    for secret in (server.token, "what memory", "first?", "q1", "m1"):
        assert secret not in text


REFUSED = [
    ("no token", {"X_Comis_Token": None}, 403),
    ("an empty token", {"X_Comis_Token": ""}, 403),
    ("a wrong token", {"X_Comis_Token": "x" * 43}, 403),
    ("a token that is no ASCII", {"X_Comis_Token": "é" * 43}, 403),
    ("a name bound to our address", {"Host": "evil.example"}, 421),
    ("that name with our port", {"Host": "evil.example:{port}"}, 421),
    ("localhost, which a name server may serve", {"Host": "localhost:{port}"}, 421),
    ("another port", {"Host": "127.0.0.1:1"}, 421),
    ("no host", {"Host": None}, 421),
    ("a host of two", {"Host": "127.0.0.1:{port}, evil.example"}, 421),
    ("another site", {"Origin": "https://evil.example"}, 403),
    ("no site", {"Origin": "null"}, 403),
    ("another port's page", {"Origin": "http://127.0.0.1:1"}, 403),
    ("a longer origin", {"Origin": "http://127.0.0.1:{port}.evil.example"}, 403),
    ("an encrypted origin", {"Origin": "https://127.0.0.1:{port}"}, 403),
    ("a cross-site fetch", {"Sec_Fetch_Site": "cross-site"}, 403),
    ("another port's fetch", {"Sec_Fetch_Site": "same-site"}, 403),
    ("a navigation", {"Sec_Fetch_Site": "none"}, 403),
]


@pytest.mark.parametrize(
    ("changed", "status"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "/api/state", None), ("GET", "/api/agreement", None), ("POST", "/api/act", ACT)],
)
def test_whoever_is_not_the_page_is_refused(server, method, path, body, changed, status):
    filled = {k: v and v.replace("{port}", str(server.server_port)) for k, v in changed.items()}
    filled = {k: v.encode("utf-8") if v else v for k, v in filled.items()}
    found, _, answer = ask(server, method, path, body, **filled)
    assert found == status
    assert list(json.loads(answer)) == ["error"]
    assert entries(server) == []


def test_an_act_needs_an_origin(server):
    assert ask(server, "POST", "/api/act", ACT, Origin=None, Sec_Fetch_Site=None)[0] == 403
    assert ask(server, "GET", "/api/state", Origin=None, Sec_Fetch_Site=None)[0] == 200
    assert entries(server) == []


def test_the_page_too_is_served_to_its_own_name_alone(server):
    assert ask(server, "GET", "/", Host="evil.example")[0] == 421


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "//etc/passwd", "/./", "/api/../page.js",
        "/page.js", "/page.css", "/judgments/ada.jsonl", "/ada.jsonl", "/?x", "/#x", "/index.html",
        "/api/state/", "/api/state?x=1", "/api/state%00", "/\\..\\..\\etc\\passwd", "*", "x",
        "http://127.0.0.1/api/state", "/favicon.ico", "/api", "/" + "a" * 5000,
    ],
)  # fmt: skip
def test_a_path_is_one_of_few_names_and_never_a_file(server, path):
    for method, body in (("GET", None), ("POST", ACT)):
        status, _, answer = ask(server, method, path, body)
        assert status == 404
        assert json.loads(answer) == {"error": "there is no such thing here"}
    assert entries(server) == []


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "HEAD", "X"])
def test_other_methods_do_nothing(server, method):
    status, sent, _ = ask(server, method, "/api/act", ACT)
    assert status == 501
    assert "Access-Control-Allow-Origin" not in sent
    assert entries(server) == []


@pytest.mark.parametrize(
    "kind",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
     "text/plain; application/json", "application/json; charset=utf-7", "application/jsonp"],
)  # fmt: skip
def test_only_json_is_taken(server, kind):
    assert ask(server, "POST", "/api/act", ACT, Content_Type=kind)[0] == 415
    assert entries(server) == []


def test_json_may_say_its_encoding(server):
    kind = "application/json; charset=utf-8"
    assert ask(server, "POST", "/api/act", ACT, Content_Type=kind)[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"3", b"NaN", b'"grade"', b"\xff\xfe", b"[" * 1000,
        b'{"act":"grade","turn":0,"grade":4}', b'{"act":"grade","turn":0,"grade":-1}',
        b'{"act":"grade","turn":0,"grade":1.0}', b'{"act":"grade","turn":0,"grade":"1"}',
        b'{"act":"grade","turn":0,"grade":true}', b'{"act":"grade","turn":0}',
        b'{"act":"grade","grade":1}', b'{"turn":0,"grade":1}', b'{"act":"skip","turn":0,"grade":1}',
        b'{"act":"drop","turn":0}', b'{"act":["grade"],"turn":0,"grade":1}',
        b'{"act":"grade","turn":0,"grade":1,"judge":"../bob"}',
        b'{"act":"grade","turn":0,"grade":1,"grade":2}',
        b'{"act":"grade","turn":' + b"9" * 400 + b',"grade":1}',
    ],
)  # fmt: skip
def test_what_is_no_act_is_refused(server, body):
    status, _, answer = ask(server, "POST", "/api/act", body)
    assert status == 400
    assert len(answer) < 100  # nothing of it is echoed
    assert entries(server) == []


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"Content_Length": str(MAX_BODY_BYTES + 1)}, 413),
        ({"Content_Length": "9" * 30}, 413),
        ({"Content_Length": "-1"}, 400),
        ({"Content_Length": "+5"}, 400),
        ({"Content_Length": "٣"}, 400),
        ({"Transfer_Encoding": "chunked"}, 411),
    ],
)
def test_a_length_is_stated_and_small(server, sent, status):
    sent = {name: value.encode() for name, value in sent.items()}
    body = b"x" * (MAX_BODY_BYTES + 1)
    assert ask(server, "POST", "/api/act", body, **sent)[0] == status
    assert entries(server) == []


def test_a_huge_body_is_not_read(server):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as raw:
        head = "".join(f"{name}: {value}\r\n" for name, value in headers(server).items())
        raw.sendall(f"POST /api/act HTTP/1.1\r\n{head}Content-Length: 10000000000\r\n\r\n".encode())
        sent = 0
        try:
            while sent < 50_000_000:
                sent += raw.send(b"x" * 65536)
        except ConnectionError:
            pass
    assert sent < 50_000_000
    assert ask(server, "GET", "/api/state")[0] == 200
    assert entries(server) == []


def test_a_second_length_or_host_is_refused(server):
    length = "Content-Length: 38\r\n"
    twice = {
        f"{length}Content-Length: 5\r\n": b"411",
        f"{length}Host: {server.host}\r\n": b"421",
        f"{length}Host: evil.example\r\n": b"421",
        f"{length}Origin: https://evil.example\r\n": b"403",
    }
    for more, status in twice.items():
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as raw:
            head = "".join(f"{name}: {value}\r\n" for name, value in headers(server).items())
            body = json.dumps(ACT)
            raw.sendall(f"POST /api/act HTTP/1.1\r\n{head}{more}\r\n{body}".encode())
            assert raw.recv(4096).split()[1] == status
    assert entries(server) == []


@pytest.mark.parametrize("path", ["/", "/api/state", "/nowhere"])
def test_every_answer_forbids_what_is_not_needed(server, path):
    _, sent, _ = ask(server, "GET", path)
    assert sent["Cache-Control"] == "no-store"
    assert sent["X-Content-Type-Options"] == "nosniff"
    assert sent["X-Frame-Options"] == "DENY"
    assert sent["Referrer-Policy"] == "no-referrer"
    assert sent["Cross-Origin-Resource-Policy"] == "same-origin"
    assert sent["Cross-Origin-Opener-Policy"] == "same-origin"
    policy = sent["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "Python" not in sent["Server"]
    assert not [name for name in sent if name.startswith("Access-Control")]
    assert "Set-Cookie" not in sent


def test_an_act_sent_twice_is_taken_once(server):
    assert ask(server, "POST", "/api/act", ACT)[0] == 200
    assert ask(server, "POST", "/api/act", ACT)[0] == 409
    assert len(entries(server)) == 1


def test_a_disk_that_is_full_is_told_and_nothing_pretended(server, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    status, _, answer = ask(server, "POST", "/api/act", ACT)
    assert status == 507
    assert "No space left" in json.loads(answer)["error"]
    monkeypatch.undo()
    assert entries(server) == []
    assert json.loads(ask(server, "GET", "/api/state")[2])["graded"] == 0
    assert ask(server, "POST", "/api/act", ACT)[0] == 200


def test_nothing_that_is_asked_for_reaches_the_terminal(server, capfd):
    ask(server, "GET", "/x%1b[2J")
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as raw:
        raw.sendall(b"\x1b[2J\r\n\r\n")
        answer = raw.recv(4096)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as raw:
        raw.sendall(b"POST /api/act HTTP/1.1\r\nContent-Le")
    assert b"\x1b" not in answer
    assert capfd.readouterr() == ("", "")


def test_others_files_that_are_damaged_are_told(tmp_path):
    def damaged():
        raise JudgeError("bob.jsonl:1: not JSON \x1b[2J")

    with session(tmp_path) as opened:
        made = JudgeServer(opened, document(judge="ada", guideline=""), agreement=damaged)
        with running(made):
            status, _, answer = ask(made, "GET", "/api/agreement")
    assert status == 500
    assert json.loads(answer)["error"] == "bob.jsonl:1: not JSON ␛[2J"


def test_a_taken_port_is_told(server, tmp_path):
    with session(tmp_path, "bob") as opened, pytest.raises(JudgeError, match="name another"):
        JudgeServer(opened, server.page, agreement=dict, port=server.server_port)
