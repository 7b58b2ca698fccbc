"""Requests with pauses over kept connections, with urllib3 (1.26 or 2).

Reads {"port", "keys", "pausesMs", "body"} from standard input: a key and a list of pauses for each connection. Writes
{"plain", "retrying"}: for each, the statuses of the answers, and the errors of requests without an answer.
"""

import json
import sys
import threading
import time

import urllib3

task = json.load(sys.stdin)


def run(index, retries, result):
    pool = urllib3.HTTPConnectionPool("127.0.0.1", task["port"], maxsize=1, retries=retries, timeout=30)
    headers = {"x-api-key": task["keys"][index], "content-type": "application/json"}
    time.sleep(index * task["staggerMs"] / 1000)
    for pause_ms in [0, *task["pausesMs"][index]]:
        time.sleep(pause_ms / 1000)
        try:
            answer = pool.request("POST", "/v1/tts", body=task["body"], headers=headers)
            result["statuses"].append(answer.status)
        except urllib3.exceptions.HTTPError as error:
            result["errors"].append(repr(error))


policies = {
    "plain": False,
    # None: for POST too. A request that met a closing connection was never begun.
    "retrying": urllib3.Retry(total=1, allowed_methods=None),
}
results = {name: {"statuses": [], "errors": []} for name in policies}
threads = [
    threading.Thread(target=run, args=(index, policy, results[name]))
    for name, policy in policies.items()
    for index in range(len(task["keys"]))
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
json.dump(results, sys.stdout)
