#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 30
"""The S3 store against a real server (npm's s3rver), reached through a proxy that checks every signature with its own
implementation (s3rver looks at no V4 signature) and can fail in all the ways networks and servers do."""
import contextlib
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import time

import s3_proxy
from s3_server import BUCKET, BUILD, Server, install, skip

CHECK = BUILD / "tests" / "s3_check"
MIB = 1 << 20
PART = 5 * MIB
ENOENT, EIO, EBUSY, EDENIED = -4, -3, -6, -10
CASES = []


def case(f):
    CASES.append(f)
    return f


class Client:
    """Runs s3_check; every test has a prefix of its own."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.prefix = "p"
        self.bucket = BUCKET

    def start(self, *args, **env):
        whole = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith("AWS_")}
        whole.update(AWS_ACCESS_KEY_ID=s3_proxy.ACCESS, AWS_SECRET_ACCESS_KEY=s3_proxy.SECRET, S3_CHECK_SETTLE_MS="200")
        whole.update(env)
        return subprocess.Popen([str(CHECK), f"s3://{self.bucket}/{self.prefix}", env.get("ENDPOINT", self.endpoint),
                                 *map(str, args)], env={k: v for k, v in whole.items() if v}, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, process):
        out, err = process.communicate(timeout=100)
        if process.returncode not in (0, 1):
            raise AssertionError(f"s3_check ended with {process.returncode}: {out}{err}")
        return process.returncode, out, err

    def ok(self, *args, **env):
        code, out, err = self.finish(self.start(*args, **env))
        assert code == 0, f"{args}: {out}{err}"
        return out

    def fails(self, want, words, *args, **env):
        code, out, err = self.finish(self.start(*args, **env))
        self.judge(code, out, want, words, args)

    def judge(self, code, out, want, words, what):
        assert code == 1, f"{what}: should have failed, said {out!r}"
        assert out.startswith(f"{want} "), f"{what}: wanted error {want}, got {out!r}"
        for w in words:
            assert re.search(w, out), f"{what}: wanted {w!r} in {out!r}"


@case
def round_trip(c, proxy, server):
    for i, size in enumerate([0, 1, PART - 1, PART, PART + 1, 12 * MIB, 21 * MIB + 7]):
        proxy.seen.clear()
        c.ok("put", f"dir/o{i}", size, i)
        parts = sum("partNumber" in path for _, path in proxy.seen)
        assert parts == (0 if size <= PART else -(-size // PART)), f"{size} bytes went in {parts} parts"
        c.ok("get", f"dir/o{i}", size, i)
    c.ok("put", "dir/o5", 3, 9)  # an object is replaced in one step
    c.ok("get", "dir/o5", 3, 9)
    c.fails(ENOENT, ["HEAD varve-test/.*/absent: 404"], "get", "absent", 1, 1)


@case
def threads(c, proxy, server):
    c.ok("put", "big", 12 * MIB, 4)
    c.ok("threads", "big", 12 * MIB, 4)


@case
def replaced_while_open(c, proxy, server):
    c.ok("put", "o", 4096, 1)
    c.fails(EIO, ["replaced while it was being read"], "replace", "o", 4096, 1)
    proxy.compares = True  # now with a server that answers 412 by itself
    c.ok("put", "o", 4096, 1)
    c.fails(EIO, ["replaced while it was being read"], "replace", "o", 4096, 1)


@case
def removing(c, proxy, server):
    c.ok("put", "a/o", 10, 1)
    c.ok("remove", "a/o")
    c.ok("remove", "a/o")
    assert c.ok("list", "a") == ""
    c.ok("put-abort", "a/o", 100, 1)
    c.ok("put-abort", "a/p", 12 * MIB, 1)
    assert c.ok("list", "a") == ""


@case
def opening(c, proxy, server):
    c.fails(ENOENT, ["nothing under s3://varve-test/"], "open", S3_CHECK_CREATE="0")
    c.ok("put", "o", 10, 1)
    c.ok("open", S3_CHECK_CREATE="0")
    c.fails(EDENIED, ["403 SignatureDoesNotMatch .check AWS_SECRET_ACCESS_KEY"], "open", AWS_SECRET_ACCESS_KEY="wrong")
    c.fails(EDENIED, ["403 InvalidAccessKeyId .check AWS_ACCESS_KEY_ID"], "open", AWS_ACCESS_KEY_ID="wrong")
    c.fails(EDENIED, ["AWS_ACCESS_KEY_ID is not set"], "open", AWS_ACCESS_KEY_ID="")
    c.fails(EDENIED, ["AWS_SECRET_ACCESS_KEY is not set"], "open", AWS_SECRET_ACCESS_KEY="")
    c.fails(EIO, ["connection refused at http://127.0.0.1:1 after 4 tries"], "open", ENDPOINT="http://127.0.0.1:1")
    for bad in "ftp://127.0.0.1", "127.0.0.1:9000", "http://", "http://u:p@127.0.0.1", "http://127.0.0.1/?x":
        c.fails(-1, ["endpoint .* is not http"], "open", ENDPOINT=bad)
    c.bucket = "no-such-bucket"
    c.fails(ENOENT, [f"404 NoSuchBucket .bucket 'no-such-bucket' does not exist at {c.endpoint}; create it"], "open")
    c.bucket = "x?y"
    c.fails(-1, ["possible bucket name"], "open")


@case
def token_and_region(c, proxy, server):
    proxy.seen_headers.clear()
    c.ok("put", "o", 10, 1, AWS_SESSION_TOKEN="a token/with+signs=", AWS_REGION="eu-north-1")
    for h in proxy.seen_headers:
        assert h["x-amz-security-token"] == "a token/with+signs=" and "/eu-north-1/s3/" in h["authorization"]


def locks(c):
    holder = c.start("lock", "lock")
    assert holder.stdout.readline() == "held\n", holder.communicate()
    c.fails(EBUSY, [f"held by process {holder.pid} on host", f"delete the object s3://{BUCKET}/"], "lock", "lock")
    assert c.finish(holder)[0] == 0
    assert c.ok("list", "") == ""
    holder = c.start("lock", "lock")
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert "lock " in c.ok("list", "")
    c.ok("lock", "lock")  # a dead holder's lock is taken over
    assert c.ok("list", "") == ""
    c.ok("put", "lock", 100, 1)
    c.fails(EBUSY, ["is no lock; delete that object"], "lock", "lock")
    c.ok("remove", "lock")


def race(c, strict):
    """Many at once: never two holders. Where the last writer wins, that is promised for writers that come from looking to writing in less time than all settle
    for: two that hold it, in a round that took long, show nothing, and the next round settles for longer."""
    for settle in 0.2, 1, 5, 20:
        began = time.monotonic()
        several = [c.start("lock", "lock", S3_CHECK_SETTLE_MS=str(int(settle * 1000))) for _ in range(6)]
        lines = [p.stdout.readline() for p in several]
        took = time.monotonic() - began
        for p in several:
            p.communicate()
        assert all(line == "held\n" or line.startswith(f"{EBUSY} ") for line in lines), lines
        if lines.count("held\n") <= 1:
            return
        assert not strict and took > 2 * settle, f"{took} s: {lines}"
    raise AssertionError("two hold the lock, however long they settle")


@case
def locks_last_writer_wins(c, proxy, server):
    locks(c)
    race(c, strict=False)


@case
def locks_by_condition(c, proxy, server):
    proxy.compares = True
    locks(c)
    race(c, strict=True)
    foreign = "varve lock 1\nhost elsewhere\nboot b\nspace s\npid 1\nstart 2\nnonce n\nsince 2024-01-01T00:00:00Z\n"
    proxy.answer(lambda m, p: m == "GET" and p.endswith("/lock"), 200, foreign)
    c.fails(EBUSY, ["process 1 on host elsewhere since 2024-01-01T00:00:00Z"], "lock", "lock")


@case
def release_without_an_answer(c, proxy, server):
    """The answer to a release is lost, and meanwhile another process takes the lock: it keeps it."""
    release = lambda m, p: m == "DELETE" and p.endswith("/lock")  # noqa: E731
    others = []

    def take():
        others.append(c.start("lock", "lock"))
        assert others[-1].stdout.readline() == "held\n", others[-1].communicate()

    for before in [], ["cut"], ["cut", "cut"]:
        for what in before:
            proxy.fault(release, what, times=1)
        proxy.fault(release, take, times=1)
        c.ok("lock", "lock")
        assert all(left == 0 for _, _, left in proxy.rules), "nothing was released"
        c.fails(EBUSY, [f"held by process {others[-1].pid} on host"], "lock", "lock")
        assert c.finish(others.pop())[0] == 0
        assert c.ok("list", "") == ""
        proxy.rules.clear()
    proxy.answer(release, 503, s3_proxy.error("SlowDown"), times=2)
    c.ok("lock", "lock")  # the third try releases it
    assert c.ok("list", "") == ""
    proxy.answer(release, 403, s3_proxy.error("AccessDenied"))
    proxy.seen.clear()
    c.ok("lock", "lock")
    assert sum(m == "DELETE" for m, _ in proxy.seen) == 1, proxy.seen


@case
def release_of_a_lock_that_was_taken_away(c, proxy, server):
    """Somebody deletes the lock between the look at it and the DELETE, and another process takes it: it keeps it."""
    release = lambda m, p: m == "DELETE" and p.endswith("/lock")  # noqa: E731
    others = []

    def take():
        proxy.rules.clear()
        c.ok("remove", "lock")
        others.append(c.start("lock", "lock"))
        assert others[-1].stdout.readline() == "held\n", others[-1].communicate()

    proxy.compares = True
    proxy.fault(release, [take], times=1)
    c.ok("lock", "lock")
    c.fails(EBUSY, [f"held by process {others[-1].pid} on host"], "lock", "lock")
    assert c.finish(others.pop())[0] == 0
    assert c.ok("list", "") == ""
    for status in 400, 501:  # a server that does not know the header for DELETE
        proxy.answer(release, status, s3_proxy.error("NotImplemented"), times=1)
        c.ok("lock", "lock")
        assert c.ok("list", "") == ""


@case
def killed_server(c, proxy, server):
    p = c.start("put-half", "o", 22 * MIB, 1)
    assert p.stdout.readline() == "half\n"
    server.kill()
    out, _ = p.communicate("\n", timeout=60)
    c.judge(p.returncode, out, EIO, [r"part \d: s3: PUT varve-test/.*/o: "], "put")
    assert server.start(), "it does not start again"
    assert c.ok("list", "") == ""
    c.fails(ENOENT, ["404"], "get", "o", 22 * MIB, 1)
    c.ok("put", "o", 22 * MIB, 2)
    c.ok("get", "o", 22 * MIB, 2)


@case
def signals(c, proxy, server):
    """A thread that sends a part takes no signal from the program."""
    pids, masks = queue.SimpleQueue(), []

    def look():
        pid = pids.get(timeout=60)
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            if int(task.name) == pid:
                continue
            with contextlib.suppress(OSError):  # a thread may end
                masks.append(int(re.search(r"SigBlk:\s*(\w+)", (task / "status").read_text())[1], 16))

    proxy.fault(lambda m, p: "partNumber=1" in p, look, times=1)
    p = c.start("put", "o", 12 * MIB, 1)
    pids.put(p.pid)
    assert c.finish(p)[0] == 0
    assert masks, "no thread sends"
    for mask in masks:
        for s in signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGCHLD:
            assert mask >> s - 1 & 1, f"{s.name} is not blocked: {mask:x}"


@case
def passing_faults(c, proxy, server):
    upload = lambda m, p: "partNumber=2" in p  # noqa: E731
    proxy.answer(upload, 503, s3_proxy.error("SlowDown"), times=2)
    proxy.answer(lambda m, p: "partNumber=1" in p, 400, s3_proxy.error("RequestTimeout"), times=1)
    proxy.answer(lambda m, p: "uploads" in p, 500, "<html>no XML", times=1)
    c.ok("put", "o", 12 * MIB, 1)
    c.ok("get", "o", 12 * MIB, 1)
    proxy.fault(upload, "cut", times=2)
    c.ok("put", "o", 12 * MIB, 2)
    proxy.fault(lambda m, p: m == "GET" and p.endswith("/o"), "cut-answer", times=2)
    c.ok("get", "o", 12 * MIB, 2)
    # a completion that succeeded, but whose answer was lost; and one that fails inside of a 200
    done = lambda m, p: m == "POST" and "uploadId" in p  # noqa: E731
    proxy.fault(done, "lose-answer", times=1)
    c.ok("put", "o", 12 * MIB, 3)
    proxy.answer(done, 200, s3_proxy.error("InternalError"), times=1)
    c.ok("put", "p", 12 * MIB, 4)
    c.ok("get", "p", 12 * MIB, 4)
    c.ok("get", "o", 12 * MIB, 3)
    # one that succeeded, but whose answer says nothing: the object itself is asked, more than once
    proxy.fault(done, "blank-answer", times=1)
    proxy.fault(lambda m, p: m == "HEAD", "cut", times=2)
    c.ok("put", "q", 12 * MIB, 5)
    c.ok("get", "q", 12 * MIB, 5)


@case
def empty_success(c, proxy, server):
    """A status of 200 that comes with no word of the object: it is no success where the object is not there."""
    done = lambda m, p: m == "POST" and "uploadId" in p  # noqa: E731
    result = "<CompleteMultipartUploadResult>{}</CompleteMultipartUploadResult>"
    c.ok("put", "o", 12 * MIB, 1)  # an older object of that name says nothing about the new one
    for text in ("", " \n", "<Error><Co", "<Error><Message>words</Message></Error>", "<html/>", "<html>", "words",
                 result.format(""), result.format("<ETag/>"), "<a>" + result.format("<ETag>e</ETag>") + "</a>",
                 result.format("<ETag>e</ETag>")[:-1]):
        for name in "o", "p":
            proxy.answer(done, 200, text)
            c.fails(EIO, [f"s3: POST varve-test/{c.prefix}/{name}: 200, but the server does not say"], "put", name,
                    12 * MIB, 2)
            proxy.rules.clear()
    c.ok("get", "o", 12 * MIB, 1)
    c.fails(ENOENT, ["404"], "get", "p", 12 * MIB, 2)
    proxy.answer(lambda m, p: m == "PUT", 200, "")
    c.fails(EIO, [f"s3: PUT varve-test/{c.prefix}/r: 200, but no receipt"], "put", "r", 10, 1)
    c.fails(EIO, [r"no receipt \(ETag\) for part"], "put", "r", 12 * MIB, 1)
    proxy.rules.clear()
    # what real servers say, after the white space that they send while they work, is believed
    text = ('<?xml version="1.0" encoding="UTF-8"?>\n \n<CompleteMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/'
            '2006-03-01/"><Location>x</Location><ETag>&quot;3858f62230ac3c915f300c664312c11f-3&quot;</ETag>'
            "</CompleteMultipartUploadResult>")
    for answer in text, "  " + text, text.replace("Result xmlns", "Result  xmlns:x='y' xmlns"):
        proxy.answer(done, 200, answer)
        proxy.seen.clear()
        c.ok("put", "s", 12 * MIB, 1)
        assert not any(m == "HEAD" for m, _ in proxy.seen), proxy.seen
        proxy.rules.clear()


@case
def lasting_faults(c, proxy, server):
    put = lambda m, p: m == "PUT"  # noqa: E731
    proxy.answer(put, 503, s3_proxy.error("SlowDown"))
    c.fails(EIO, ["503 SlowDown", "after 3 tries"], "put", "o", 10, 1, S3_CHECK_RETRIES="2")
    proxy.rules.clear()
    for status, code, err, words in [
            (403, "AccessDenied", EDENIED, "not allowed"),
            (403, "RequestTimeTooSkewed", EDENIED, "clock"),
            (400, "InvalidRequest", EIO, "400 InvalidRequest: words"),
            (301, "PermanentRedirect", EIO, "redirects"),
            (507, "XMinioStorageFull", -8, "507")]:
        proxy.seen.clear()
        proxy.answer(put, status, s3_proxy.error(code))
        c.fails(err, [f"s3: PUT varve-test/{c.prefix}/o: {status} {code}", words], "put", "o", 10, 1)
        assert sum(m == "PUT" for m, _ in proxy.seen) == 1, f"{status} was tried again"
        proxy.rules.clear()
    proxy.answer(lambda m, p: m == "POST" and "uploadId" in p, 200, s3_proxy.error("InvalidPart"))
    c.fails(EIO, ["200 InvalidPart"], "put", "o", 12 * MIB, 1)
    proxy.rules.clear()
    proxy.fault(lambda m, p: m == "PUT", "stall")
    c.fails(EIO, ["too slow"], "put", "o", 10, 1, S3_CHECK_STALL_S="1", S3_CHECK_RETRIES="0")
    proxy.rules.clear()
    assert c.ok("list", "") == ""


@case
def hostile_answers(c, proxy, server):
    c.ok("put", "o", 12 * MIB, 1)
    listed = lambda m, p: "list-type" in p and "max-keys=1000" in p  # noqa: E731
    result = "<ListBucketResult>{}</ListBucketResult>"
    evil = [
        "", "<", "not XML", "<ListBucketResult>", "<a/>", result.format("<Contents><Size>1</Size></Contents>"),
        result.format("<Contents><Key>elsewhere/x</Key><Size>1</Size></Contents>"),
        result.format(f"<Contents><Key>{c.prefix}/x</Key><Size>-1</Size></Contents>"),
        result.format(f"<Contents><Key>{c.prefix}/x</Key><Size>99999999999999999999</Size></Contents>"),
        result.format("<IsTruncated>true</IsTruncated>"),
        result.format("<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"),
        result.format("<Contents><Key>&x;</Key></Contents>"), "<!DOCTYPE a [<!ENTITY x 'y'>]>" + result.format("&x;"),
        result.format("<Name>" + "x" * 9000 + "</Name>"), "<a>" * 1000, result.format("x" * (17 * MIB)),
    ]
    for text in evil:
        proxy.answer(listed, 200, text)
        c.fails(EIO, ["s3: (LIST|GET) varve-test/"], "list", "")
        proxy.rules.clear()
    names = "".join(f"<Contents><Key>{c.prefix}/{k}</Key><Size>1</Size></Contents>"
                    for k in ["", "..", ".", "a b", "x/y", "&#x2e;.", "ok", "&amp;"])
    proxy.answer(listed, 200, result.format(names))
    assert c.ok("list", "") == "ok 1\n"  # what this library never made is not listed
    proxy.rules.clear()

    ranged = lambda m, p: m == "GET" and p.endswith("/o")  # noqa: E731
    for fault in "ignore-range", "short", "wrong-range":
        proxy.fault(ranged, fault)
        c.fails(EIO, ["s3: GET varve-test/.*/o: "], "get", "o", 12 * MIB, 1)
        proxy.rules.clear()
    start = lambda m, p: m == "POST" and "uploads" in p  # noqa: E731
    for text in "", "<a/>", "<InitiateMultipartUploadResult><UploadId/></InitiateMultipartUploadResult>":
        proxy.answer(start, 200, text)
        c.fails(EIO, ["without naming it"], "put", "p", 6 * MIB, 1)
        proxy.rules.clear()
    proxy.answer(lambda m, p: m == "PUT", 403, "<Error><Code>A\x1b[31m\n</Code><Message>" + "m" * 999 + "</Message>")
    c.fails(EDENIED, [r"403 A\?\[31m"], "put", "p", 1, 1)


@case
def sweeping(c, proxy, server):
    c.ok("sweep", "")  # s3rver keeps no list of uploads: not an error
    entry = "<Upload><Key>{}</Key><UploadId>{}</UploadId><Initiated>{}</Initiated></Upload>"
    text = ("<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
            + entry.format(f"{c.prefix}/l/old", "1", "2024-01-01T00:00:00.000Z")
            + entry.format(f"{c.prefix}/l/new", "2", time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()))
            + entry.format("elsewhere/old", "3", "2024-01-01T00:00:00.000Z")
            + entry.format(f"{c.prefix}/l/odd", "4", "yesterday") + "</ListMultipartUploadsResult>")
    proxy.answer(lambda m, p: m == "GET" and "uploads=" in p, 200, text)
    proxy.answer(lambda m, p: m == "DELETE", 204, "")
    proxy.seen.clear()
    c.ok("sweep", "l")
    assert [p.split("?")[1] for m, p in proxy.seen if m == "DELETE"] == ["uploadId=1"], proxy.seen


@case
def short_of_memory(c, proxy, server):
    c.ok("oom", "o", 1000, 1, S3_CHECK_SETTLE_MS="0")
    proxy.seen.clear()
    c.ok("oom", "o", 80000, 1, S3_CHECK_SETTLE_MS="0", S3_CHECK_PART="65536")  # in parts, which s3rver takes in any size
    assert any("partNumber=2" in path for _, path in proxy.seen)


@case
def listing(c, proxy, server):
    """The last one: with so many objects s3rver is slow in everything."""
    c.ok("many", "m/n", 1203)
    lines = c.ok("list", "m/n").split("\n")[:-1]
    assert lines[0] == f"00000 {len('m/n/00000')}" and lines[-1] == "sub/ 0" and len(lines) == 1204, lines[-3:]
    c.ok("put", "m/x", 7, 1)  # s3rver does not see a folder that holds nothing but folders; S3 does
    assert c.ok("list", "m") == "n/ 0\nx 7\n"
    assert c.ok("list", "") == "m/ 0\n"
    assert c.ok("list", "m/nowhere") == ""


def main():
    if not CHECK.exists():
        skip(f"{CHECK.name} is not built")
    install()
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as d:
        server = Server(pathlib.Path(d))
        proxy = s3_proxy.Proxy(server.port)
        client = Client(f"http://127.0.0.1:{proxy.port}")
        try:
            if client.start("open").wait() == 77:
                skip("built without libcurl")
            for f in CASES:
                if wanted and f.__name__ not in wanted:
                    continue
                since = time.monotonic()
                client.prefix, client.bucket = f"t-{f.__name__}", BUCKET
                proxy.reset()
                f(client, proxy, server)
                assert not proxy.complaints, proxy.complaints
                print(f"{f.__name__}: {time.monotonic() - since:.1f} s")
        finally:
            server.kill()


main()
