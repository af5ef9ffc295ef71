"""Does the phases `incident.collect`, `incident.write` and `incident.tell`."""

import logging
from collections import Counter

import taskledger

logging.basicConfig(level=logging.WARNING, format="python worker: %(message)s")
worker = taskledger.Worker(name="incident-python", concurrency=4)


@worker.method("incident.collect")
def collect(input, ctx):
    # Exactly the declared inputs are there, and they are of their types.
    failures = Counter(each["service"] for each in input["log"] if each["status"] >= 500)
    output = {"requests": len(input["log"]), "failures": dict(failures)}
    slow = [each for each in input["log"] if each["ms"] > input["slow_ms"]]
    if slow:
        output["slowest"] = max(slow, key=lambda each: each["ms"])
    return output


@worker.method("incident.write")
def write(input, ctx):
    lines = [f"{input['incident']}: {input['severity']}", ""]
    lines += [f"{input['failed']} of {input['requests']} requests failed:", input["chart"]]
    # An input that is not required is left out when the output is not there.
    if "slowest" in input:
        lines.append("The slowest took {ms} ms, in {service}.".format(**input["slowest"]))
    else:
        lines.append("No request was slow.")
    summary = {key: input[key] for key in ("incident", "severity", "failed", "requests")}
    return {"report": "\n".join(lines), "summary": summary}


@worker.method("incident.tell")
def tell(input, ctx):
    return {"mails": [f"{service} was not available" for service in sorted(input["failures"])]}


if __name__ == "__main__":
    worker.run()
