"""Tasks over several nodes: a worker at one, a client at another. Prints a line for each that has ended."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import taskledger

AT_ONCE = 8
PATIENCE_SECONDS = 120


def main(worker_url: str, client_url: str, count: int) -> None:
    worker = taskledger.Worker(worker_url, concurrency=AT_ONCE, poll_seconds=5.0)

    @worker.method("double")
    def double(input, ctx):
        return {"n": 2 * input["n"]}

    running = threading.Thread(target=worker.run)
    running.start()
    try:
        with taskledger.Client(client_url) as client, ThreadPoolExecutor(AT_ONCE) as pool:

            def one(n: int) -> None:
                task = {
                    "name": f"task {n}",
                    "schemas": {"type": "remote", "method": "double"},
                    "inputs": {"n": n},
                }
                run = client.execute_and_wait([task], timeout=PATIENCE_SECONDS)
                print(n, run.state, (run.result or {}).get("n"), flush=True)

            list(pool.map(one, range(count)))
    finally:
        worker.stop()
        running.join()


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
