"""Serves the page of this example, and passes its questions on to signalbox.

    page.py PORT SIGNALBOX_URL

The page and the API have one origin that way: the browser asks for no CORS headers, which signalbox
does not send, and an API key would stay here. Not for production: it has no limits.
"""

import http.client
import http.server
import pathlib
import sys
import urllib.parse

HERE = pathlib.Path(__file__).parent
FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/facts.json": ("facts.json", "application/json"),
}
PORT, UPSTREAM = int(sys.argv[1]), urllib.parse.urlsplit(sys.argv[2])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path not in FILES:
            self.send_error(404)
            return
        name, kind = FILES[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write((HERE / name).read_bytes())

    def do_POST(self):
        if self.path != "/v1/chat/completions":
            self.send_error(404)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        upstream = http.client.HTTPConnection(UPSTREAM.netloc, timeout=60)
        try:
            upstream.request("POST", UPSTREAM.path + "/chat/completions", body, {"Content-Type": "application/json"})
            self.pass_on(upstream.getresponse())
        except BrokenPipeError:
            pass  # the reader left
        except OSError as err:
            self.send_error(502, explain=str(err))
        finally:
            upstream.close()

    def pass_on(self, answer):
        """Sends each piece of the answer as soon as it is there."""
        self.send_response(answer.status)
        for name in ("Content-Type", "x-signalbox-guard"):
            if value := answer.getheader(name):
                self.send_header(name, value)
        self.end_headers()
        while piece := answer.read1():
            self.wfile.write(piece)

    def log_message(self, *_):
        """Keeps quiet."""


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
