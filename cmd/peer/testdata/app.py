"""The application of poison_app_test.go under wsgiref: app.py CLAIMS, where a claim is NAME=VALUE.
It prints the ports of two servers: one states a lifetime in each answer, the other in none."""
import posixpath, re, socket, sys, threading
from socketserver import ThreadingMixIn
from urllib.parse import unquote
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

CLAIMS = [claim.split("=", 1) for claim in sys.argv[1:]]


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128


class Handler(WSGIRequestHandler):
    def get_environ(self):
        env = super().get_environ()
        env["RAW"] = self.path
        return env

    def finish(self):  # reads what the app left: a reset could take the answer away
        super().finish()
        try:
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1)
            while self.connection.recv(65536):
                pass
        except OSError:
            pass

    def address_string(self):
        return self.client_address[0]

    def log_message(self, *args):
        pass


def app(stated):
    def serve(env, start):
        raw, _, query = re.sub(r"^\w+://[^/]*", "", env["RAW"]).partition("?")
        path = posixpath.normpath("/" + unquote(raw).lstrip("/"))
        fields = {k[5:]: v for k, v in env.items() if k.startswith("HTTP_")}
        host = fields.get("X_FORWARDED_HOST") or fields.get("HOST", "")
        scheme = fields.get("X_FORWARDED_PROTO") or "http"
        head = [("Content-Type", "text/html"), ("Cache-Control", "public, max-age=3600")][: 2 if stated else 1]

        def answer(status, text, *more):
            body = text.encode("utf-8", "surrogateescape")
            start("%d X" % status, head + list(more) + [("Content-Length", str(len(body)))])
            return [] if env["REQUEST_METHOD"] == "HEAD" else [body]

        if sum(len(k) + len(v) + 4 for k, v in fields.items()) > 8190:
            return answer(400, "too large")
        if "IF_MATCH" in fields and fields["IF_MATCH"] != "*":
            return answer(412, "another")
        if path.startswith("/account"):
            who = re.search(r"(?:^|; *)session=([^;]*)", fields.get("COOKIE", ""))
            head[1:] = [("Cache-Control", "private")] if stated else []
            return answer(200, "hello " + (who.group(1) if who else "a stranger"))
        if path.startswith("/ranged/") and "RANGE" in fields:
            status = int(re.sub(r"\D", "", path) or 404)
            return answer(status, "no ranges", *([("Location", "/ranged")] if status == 302 else []))
        if path == "/missing":
            return answer(404, "not here")
        if path == "/dir" and not raw.endswith("/"):
            return answer(301, "", ("Location", "%s://%s/dir/?%s" % (scheme, host, query)))
        if path == "/language":
            return answer(200, "in " + fields.get("ACCEPT_LANGUAGE", ""), ("Vary", "Accept-Language"))
        if path == "/badvary":
            return answer(200, "for %s, %s" % (fields.get("A", ""), fields.get("C", "")), ("Vary", "a b, c"))
        text = "%s %s?%s\n<script src=\"%s://%s/app.js\">\n" % (env["REQUEST_METHOD"].replace("HEAD", "GET"), raw, query, scheme, host)
        for name, default in CLAIMS:
            value = fields.get(name) or (fields.get("HOST", "") if default == "HOST" else default)
            if value:
                text += "%s=%s\n" % (name, value)
        return answer(200, text)

    return serve


servers = [make_server("127.0.0.1", 0, app(stated), Server, Handler) for stated in (True, False)]
print(*(s.server_port for s in servers), flush=True)
for s in servers:
    threading.Thread(target=s.serve_forever, daemon=True).start()
sys.stdin.read()
