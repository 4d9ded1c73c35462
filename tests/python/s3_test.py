"""Packs in buckets: an S3-compatible server, and what requests are signed with."""
import hashlib
import hmac
import os
import re
import sys

import pytest

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from read_batches import assert_equal, batches  # noqa: E402
from servers import S3, FaultServer  # noqa: E402

pytestmark = pytest.mark.usefixtures("network")
S3_MODULES = os.environ.get("CHUNKHIT_S3_SERVER", "")


@pytest.mark.deep
@pytest.mark.skipif(not os.path.isdir(S3_MODULES), reason="CHUNKHIT_S3_SERVER names no folder of modules with s3rver")
def test_reads_from_s3(packs, tmp_path, monkeypatch):
    with S3(S3_MODULES, tmp_path / "s3", "training") as server:
        for file in (packs / "shard").iterdir():
            server.put(file, f"sets/pack one/{file.name}".replace(" ", "%20"))
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        url = "s3://training/sets/pack one"
        assert_equal(batches(chunkhit.ImageLoader(url, batch_size=16)),
                     batches(chunkhit.ImageLoader(packs / "shard", batch_size=16)))
        # The same keys from a profile; the endpoint, too.
        for name in server.environment:
            monkeypatch.delenv(name)
        (tmp_path / ".aws").mkdir()
        (tmp_path / ".aws" / "credentials").write_text("[team]\naws_access_key_id = S3RVER\naws_secret_access_key=S3RVER\n")
        (tmp_path / ".aws" / "config").write_text(f"[profile team]\nregion = us-east-1\nendpoint_url = {server.url}\n")
        monkeypatch.setenv("AWS_PROFILE", "team")
        assert chunkhit.ImageLoader(url).size == 100
        (tmp_path / ".aws" / "credentials").write_text("[team]\naws_access_key_id=nobody\naws_secret_access_key=secret\n")
        with pytest.raises(chunkhit.Error, match="HTTP 403 .*InvalidAccessKeyId.*AWS_ACCESS_KEY_ID") as refused:
            chunkhit.ImageLoader(url)
        assert refused.value.code == "usage" and "secret" not in str(refused.value).replace("AWS_SECRET", "")
        with pytest.raises(chunkhit.Error, match="manifest.json: HTTP 404 .*NoSuchKey"):
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S3RVER")
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "S3RVER")
            chunkhit.ImageLoader("s3://training/other")


def signature_of(request, secret):
    """The signature that AWS's Signature Version 4 asks for, computed from a request's own headers."""
    found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, SignedHeaders=([^,]+), "
                         r"Signature=([0-9a-f]{64})", request.headers["Authorization"])
    _, day, region, signed, signature = found.groups()
    headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in signed.split(";"))
    canonical = f"GET\n{request.path}\n\n{headers}\n{signed}\n{request.headers['x-amz-content-sha256']}"
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], f"{day}/{region}/s3/aws4_request",
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request", text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return signature, key.hex()


def test_signs_requests_as_aws_asks_for(packs, monkeypatch):
    signatures = []
    with FaultServer(packs.parent) as server:
        answer = server.answer
        server.answer = lambda request: (signatures.append(signature_of(request, "k/e+y")), answer(request))
        for name, value in {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "k/e+y", "AWS_SESSION_TOKEN": "to/ken==",
                            "AWS_REGION": "eu-west-3", "AWS_ENDPOINT_URL": server.url}.items():
            monkeypatch.setenv(name, value)
        assert chunkhit.ImageLoader(f"s3://{packs.name}/shard").size == 100
    assert len(signatures) >= 3 and all(found == expected for found, expected in signatures)


def test_takes_long_tokens_from_the_profile_file(packs, tmp_path, monkeypatch):
    token, seen = "t/" * 1500, []
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[default]\naws_access_key_id = AKIA\naws_session_token = {token}\naws_secret_access_key = k/e+y\n")
    with FaultServer(packs.parent) as server:
        answer = server.answer
        server.answer = lambda request: (seen.append((request.headers["x-amz-security-token"], signature_of(request, "k/e+y"))),
                                         answer(request))
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        chunkhit.ImageLoader(f"s3://{packs.name}/shard")
    assert {found for found, _ in seen} == {token} and all(found == expected for _, (found, expected) in seen)


def test_keys_go_to_no_other_server(packs, monkeypatch):
    asked = []
    with FaultServer(packs.parent) as other:
        other.answer = lambda request: (asked.append(request.path), other.fail(request, 404))
        elsewhere = {"status": 307, "headers": {"Location": f"http://localhost:{other.server.server_port}/x"}}
        with FaultServer(packs.parent, lambda *_: elsewhere) as server:
            for name, value in {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "key", "AWS_SESSION_TOKEN": "token",
                                "AWS_ENDPOINT_URL": server.url}.items():
                monkeypatch.setenv(name, value)
            with pytest.raises(chunkhit.Error, match="HTTP 307 .*: set AWS_REGION to the bucket's region"):
                chunkhit.ImageLoader(f"s3://{packs.name}/shard")
    assert asked == []


def test_names_credentials_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(chunkhit.Error, match='AWS_PROFILE: no profile "nobody" in .*/credentials or .*/config') as raised:
        chunkhit.ImageLoader("s3://bucket/train")
    assert raised.value.code == "usage"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    with pytest.raises(chunkhit.Error, match="set AWS_SECRET_ACCESS_KEY, too"):
        chunkhit.ImageLoader("s3://bucket/train")
