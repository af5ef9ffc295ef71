"""Generates the Python code of the EventBus protocol, and connects to the server."""

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import grpc_tools
from grpc_tools import protoc

PROTO = Path(__file__).resolve().parents[3] / "crates/eventbus/proto"
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"

# The generated code is needed only until it is imported.
with tempfile.TemporaryDirectory() as folder:
    paths = [f"-I{PROTO}", f"-I{WELL_KNOWN}", f"--python_out={folder}", f"--grpc_python_out={folder}"]
    if protoc.main(["protoc", *paths, "eventbus.proto"]) != 0:
        sys.exit("eventbus.proto does not compile")
    sys.path.insert(0, folder)
    pb = import_module("eventbus_pb2")
    stubs = import_module("eventbus_pb2_grpc")
    sys.path.remove(folder)

token = os.environ.get("TASKLEDGER_TOKEN")
# To be sent with every call.
credentials = [("authorization", f"Bearer {token}")] if token else []


def connect():
    url = urlsplit(os.environ.get("TASKLEDGER_URL", "http://127.0.0.1:8000"))
    if url.scheme == "https":
        channel = grpc.secure_channel(url.netloc, grpc.ssl_channel_credentials())
    else:
        channel = grpc.insecure_channel(url.netloc)
    return stubs.EventBusStub(channel)
