"""Servers on this machine that hold a folder: nginx, one that faults on request, and an S3-compatible one."""
import contextlib
import http.server
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import urllib.request

LOOPBACK = "127.0.0.1"


def free_port():
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def wait_for_port(port, process=None, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f"no server on port {port}")


def make_certificate(folder):
    """A certificate for localhost, which is its own authority, and its key."""
    certificate, key = folder / "server.crt", folder / "server.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    return certificate, key


class Nginx:
    """nginx over a folder, which can be stopped and started on its port again; it waits `latency` seconds for each answer."""

    ECHO = "/usr/lib/nginx/modules/ngx_http_echo_module.so"  # that latency needs

    MARK = "/.logged"  # asked for to know that all requests before are in the log: a line is written behind its answer

    def __init__(self, root, work, certificate=None, settings="", latency=0):
        self.port = free_port()
        self.work = pathlib.Path(work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.log = self.work / "access.log"
        tls = f"ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]};" if certificate else ""
        self.url = f"{'https' if certificate else 'http'}://{LOOPBACK}:{self.port}"
        user = "user root;" if os.getuid() == 0 else ""
        module = f"load_module {self.ECHO};" if latency else ""
        if latency:
            settings += f"location / {{ echo_sleep {latency}; echo_exec @file; }} location @file {{ root {root}; }}"
        (self.work / "nginx.conf").write_text(f"""{module}
            {user} worker_processes 1; daemon off; pid {self.work}/nginx.pid; error_log {self.work}/error.log;
            events {{ worker_connections 256; }}
            http {{
              log_format ranges '$status $request_uri $http_range $body_bytes_sent';
              access_log {self.log} ranges; sendfile on; client_body_temp_path {self.work}/body;
              proxy_temp_path {self.work}/proxy; fastcgi_temp_path {self.work}/fastcgi;
              uwsgi_temp_path {self.work}/uwsgi; scgi_temp_path {self.work}/scgi;
              server {{ listen {LOOPBACK}:{self.port} {'ssl' if certificate else ''}; {tls} root {root}; {settings}
                        location = {self.MARK} {{ return 204; }} }}
            }}""")
        self.process = None

    def start(self):
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = subprocess.Popen([nginx, "-p", self.work, "-c", self.work / "nginx.conf", "-e",
                                         self.work / "error.log"], stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def requests(self):
        """(status, path, range, bytes) of each request so far."""
        self.wait_for_log()
        if not self.log.exists():
            return []
        found = (line.split(" ") for line in self.log.read_text().splitlines())
        return [(int(status), path, ranges, int(count)) for status, path, ranges, count in found if path != self.MARK]

    def forget_requests(self):
        self.wait_for_log()
        self.log.write_text("")

    def wait_for_log(self):
        if self.process is None or self.process.poll() is not None:
            return
        marks = self.log.read_text().count(self.MARK) if self.log.exists() else 0
        trusting = ssl._create_unverified_context() if self.url.startswith("https") else None
        urllib.request.urlopen(self.url + self.MARK, context=trusting, timeout=30).close()
        while self.log.read_text().count(self.MARK) <= marks:
            time.sleep(0.001)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()


class FaultServer:
    """A server of a folder; `fault(path, first, last, number)` names what to do with a request, or None. It is silent, where that
    is the fault, until `go_on` is set. `has_failed` is set once a request got no bytes."""

    def __init__(self, root, fault=lambda path, first, last, number: None):
        self.root, self.fault, self.number = pathlib.Path(root), fault, 0
        self.has_failed, self.go_on = threading.Event(), threading.Event()
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with contextlib.suppress(ConnectionError):
                    outer.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://{LOOPBACK}:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def answer(self, request):
        file = self.root / urllib.parse.unquote(request.path).lstrip("/")
        with self.lock:
            number, self.number = self.number, self.number + 1
        if not file.is_file():
            return self.fail(request, 404)
        data = file.read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
        first, last = (int(asked[1]), min(int(asked[2]), len(data) - 1)) if asked else (0, len(data) - 1)
        fault = self.fault(request.path, first, last, number) or {}
        if "status" in fault or "silent" in fault:
            self.has_failed.set()
        if "silent" in fault:
            self.go_on.wait()
        time.sleep(fault.get("delay", 0))
        if "stream" in fault:
            return self.stream(request, fault["stream"](data, first, last))
        if "status" in fault:
            return self.fail(request, fault["status"], fault.get("headers", {}), fault.get("body", b""))
        shift = fault.get("shift", 0)
        body = data[first + shift:last + shift + 1]
        request.send_response(200 if fault.get("ignores_range") else 206)
        if fault.get("ignores_range"):
            body = data
        else:
            request.send_header("Content-Range",
                                f"bytes {first + shift}-{last + shift}/{len(data) + fault.get('longer', 0)}")
        body = body[:len(body) - fault.get("shorter", 0)]
        if fault.get("damages"):
            body = bytes([body[0] ^ 1]) + body[1:]
        request.send_header("Content-Length", str(len(body)))
        request.send_header("ETag", fault.get("etag", f'"{file.stat().st_mtime_ns:x}"'))
        request.end_headers()
        cut = fault.get("cut")
        for at in range(0, len(body), 4096):
            if cut is not None and at >= cut:
                request.close_connection = True
                request.connection.shutdown(socket.SHUT_RDWR)
                return None
            request.wfile.write(body[at:at + 4096])
            time.sleep(fault.get("pause", 0))
        return None

    @staticmethod
    def stream(request, pieces):
        """Sends pieces of a whole answer, head and body, and ends the connection; a number is a pause."""
        request.close_connection = True
        with contextlib.suppress(OSError):
            for piece in pieces:
                if isinstance(piece, bytes):
                    request.connection.sendall(piece)
                else:
                    time.sleep(piece)

    @staticmethod
    def fail(request, status, headers=None, body=b""):
        request.send_response(status)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()


class S3:
    """s3rver over a folder, each of whose folders is a bucket; keys S3RVER, S3RVER."""

    def __init__(self, modules, work, bucket):
        self.port = free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self.environment = {"AWS_ACCESS_KEY_ID": "S3RVER", "AWS_SECRET_ACCESS_KEY": "S3RVER",
                            "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": self.url}
        self.command = ["node", str(pathlib.Path(modules) / "s3rver" / "bin" / "s3rver.js"), "-d", str(work), "-a",
                        LOOPBACK, "-p", str(self.port), "--configure-bucket", bucket]
        self.bucket = bucket

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def put(self, file, key):
        """Uploads a file, as any tool does."""
        subprocess.run(["curl", "-sSf", "--noproxy", "*", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", "S3RVER:S3RVER",
                        "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-T", file, f"{self.url}/{self.bucket}/{key}"],
                       check=True, capture_output=True)
