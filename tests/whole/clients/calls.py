"""Calls on a socket with the package `websockets`, and reads it until it is closed:

    python calls.py URL CALL...

With the token in TOKEN, if that is set. One JSON line for the opening, the end, and each message.
"""

import json
import os
import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect


def say(**line):
    print(json.dumps(line), flush=True)


def main(url, *calls):
    headers = {}
    if "TOKEN" in os.environ:
        headers["Authorization"] = "Bearer " + os.environ["TOKEN"]
    try:
        socket = connect(url, additional_headers=headers)
    except InvalidStatus as refused:
        say(broken=f"refused: {refused.response.status_code}")
        return
    say(open=True)
    for call in calls:
        socket.send(call)
    try:
        while True:
            say(id="", event="message", data=socket.recv())
    except ConnectionClosed as closed:
        say(broken=f"closed: {closed.rcvd.code if closed.rcvd else 1006}")


main(*sys.argv[1:])
