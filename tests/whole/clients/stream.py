"""Reads a stream with the package `sseclient-py` over urllib3 until it is ended from outside:

    python stream.py URL

With the token in TOKEN, if that is set. One JSON line for each opening, each break, and each event. The package reads one answer; going on
behind the last event, as EventSource does by itself, is left to its users.
"""

import json
import os
import sys
import time

import sseclient
import urllib3

PAUSE_SECONDS = 0.5


def say(**line):
    print(json.dumps(line), flush=True)


def main(url):
    pool = urllib3.PoolManager(retries=False)
    headers = {"accept": "text/event-stream", "cache-control": "no-cache"}
    if "TOKEN" in os.environ:
        headers["authorization"] = "Bearer " + os.environ["TOKEN"]
    while True:
        try:
            answer = pool.request("GET", url, headers=headers, preload_content=False)
            if answer.status != 200:
                sys.exit(f"status {answer.status}: {answer.read()!r}")
            say(open=True)
            for event in sseclient.SSEClient(answer).events():
                say(id=event.id, event=event.event, data=event.data)
                if event.id is not None:
                    headers["last-event-id"] = event.id
            say(broken="the answer has ended")
        except urllib3.exceptions.HTTPError as error:
            say(broken=str(error))
        time.sleep(PAUSE_SECONDS)


main(*sys.argv[1:])
