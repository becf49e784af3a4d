"""A proxy in front of an S3 server: it checks the signature and the payload hash of every request by its own reading of
AWS Signature Version 4, can compare ETags where the server behind does not, and fails on demand."""
import hashlib
import hmac
import http.client
import http.server
import sys
import threading
import time
import urllib.parse

ACCESS = SECRET = "S3RVER"


def error(code):
    return f'<?xml version="1.0"?>\n<Error><Code>{code}</Code><Message>words</Message></Error>'


def signature(method, path, headers):
    """What the signature must be, and what it is; None where there is no proper header."""
    try:
        fields = dict(f.strip().split("=", 1) for f in headers["authorization"].split(" ", 1)[1].split(","))
        _, day, region, service, end = fields["Credential"].split("/")
    except (KeyError, ValueError, IndexError):
        return None, None
    url, _, query = path.partition("?")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    quote = lambda s: urllib.parse.quote(s, safe="-._~")  # noqa: E731
    names = fields["SignedHeaders"].split(";")
    canonical = "\n".join([
        method, urllib.parse.quote(urllib.parse.unquote(url), safe="/-._~"),
        "&".join(f"{quote(k)}={quote(v)}" for k, v in pairs),
        *(f"{n}:{' '.join(headers[n].split())}" for n in names), "", fields["SignedHeaders"],
        headers["x-amz-content-sha256"]])
    key = b"AWS4" + SECRET.encode()
    for word in day, region, service, end:
        key = hmac.new(key, word.encode(), "sha256").digest()
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], f"{day}/{region}/{service}/{end}",
                      hashlib.sha256(canonical.encode()).hexdigest()])
    unsigned = [h for h in headers if h.startswith("x-amz-") and h not in names]
    good = names == sorted(names) and "host" in names and not unsigned
    return hmac.new(key, text.encode(), "sha256").hexdigest() if good else None, fields["Signature"]


class Proxy:
    def __init__(self, port):
        self.behind = port
        self.compare_lock = threading.Lock()
        self.count_lock = threading.Lock()
        self.reset()
        server = Listener(("127.0.0.1", 0), Handler)
        server.proxy = self
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def reset(self):
        self.rules = []        # [matches(method, path), what, times left or None]
        self.seen = []         # (method, path)
        self.seen_headers = []
        self.complaints = []
        self.compares = False  # honour If-Match and If-None-Match, as S3 does
        self.under_way = 0     # of those that are slow on demand
        self.most = 0          # of them at a time

    def be_slow(self):
        with self.count_lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        time.sleep(0.04)
        with self.count_lock:
            self.under_way -= 1

    def fault(self, matches, what, times=None):
        self.rules.append([matches, what, times])

    def answer(self, matches, status, text, times=None):
        self.fault(matches, (status, text.encode()), times)

    def rule(self, method, path):
        for r in self.rules:
            if r[2] != 0 and r[0](method, path):
                if r[2] is not None:
                    r[2] -= 1
                return r[1]
        return None


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # clients hang up; that is their right
            self.proxy.complaints.append(repr(error))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def reply(self, status, headers, body, length=None):
        self.send_response_only(status)
        for k, v in headers:
            if k.lower() not in ("connection", "transfer-encoding", "content-length", "keep-alive"):
                self.send_header(k, v)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def hang_up(self):
        self.close_connection = True

    def forward(self, body, drop=()):
        c = http.client.HTTPConnection("127.0.0.1", self.server.proxy.behind, timeout=60)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("connection", *drop)}
            c.request(self.command, self.path, body, headers)
            r = c.getresponse()
            data = r.read()
            length = int(r.headers.get("content-length", 0)) if self.command == "HEAD" else None
            return r.status, r.getheaders(), data, length
        finally:
            c.close()

    def refused(self, headers, body):
        """The status and code with which S3 would turn the request down."""
        proxy = self.server.proxy
        if f"Credential={ACCESS}/" not in headers.get("authorization", ""):
            return 403, "InvalidAccessKeyId"
        want, got = signature(self.command, self.path, headers)
        if want is None or want != got:
            return 403, "SignatureDoesNotMatch"
        if headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            proxy.complaints.append("a payload hash that is wrong")
            return 400, "XAmzContentSHA256Mismatch"
        return None

    def condition_fails(self, headers):
        """As S3 compares: If-None-Match: * and If-Match, before PUT and GET."""
        match, none = headers.get("if-match"), headers.get("if-none-match")
        if not self.server.proxy.compares or not (match or none):
            return False
        c = http.client.HTTPConnection("127.0.0.1", self.server.proxy.behind, timeout=60)
        c.request("HEAD", self.path)
        r = c.getresponse()
        r.read()
        c.close()
        there = r.status == 200
        return (none == "*" and there) or (match is not None and (not there or r.headers["etag"] != match))

    def serve(self):
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {k.lower(): v for k, v in self.headers.items()}
        proxy.seen.append((self.command, self.path))
        proxy.seen_headers.append(headers)
        if headers.get("expect") or headers.get("content-type") or headers.get("transfer-encoding"):
            proxy.complaints.append(f"headers nobody asked for: {headers}")
        no = self.refused(headers, body)
        if no:
            return self.reply(no[0], [], error(no[1]).encode())
        what = proxy.rule(self.command, self.path)
        if isinstance(what, tuple):
            return self.reply(what[0], [], what[1])
        if what == "cut":
            return self.hang_up()
        if what == "slow":
            proxy.be_slow()
        if isinstance(what, list):  # something happens before the request
            what[0]()
        if what == "stall":
            time.sleep(4)
            return self.hang_up()
        with proxy.compare_lock if proxy.compares else threading.Lock():
            if self.condition_fails(headers):
                return self.reply(412, [], error("PreconditionFailed").encode())
            try:
                status, got, data, length = self.forward(body, ("range",) if what == "ignore-range" else ())
            except OSError:
                return self.hang_up()
            except http.client.HTTPException:
                return self.hang_up()
        return self.spoil(what, status, got, data, length)

    def spoil(self, what, status, got, data, length):
        if callable(what):  # something happens after the request; its answer is lost
            what()
        if what == "lose-answer" or callable(what):
            return self.hang_up()
        if what == "cut-answer":
            self.hang_up()
            return self.reply(status, got, data[:len(data) // 2], len(data))
        if what == "blank-answer":
            data = b" \n"
        if what == "short":
            data = data[:-1]
        if what == "wrong-range":
            got = [(k, "bytes 1-2/3" if k.lower() == "content-range" else v) for k, v in got]
        return self.reply(status, got, data, length)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve
