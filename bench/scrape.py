"""Imitates a Prometheus server: fetches URL a given number of times, and appends each answer's body to a file."""

import http.client
import sys
import time
from urllib.parse import urlsplit


def main() -> None:
    url, samples, interval, path = urlsplit(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    connection = connect(url.hostname, url.port)
    begun = time.monotonic()
    with open(path, "ab") as file:
        for at in range(samples):
            time.sleep(max(0.0, begun + at * interval - time.monotonic()))
            connection.request("GET", url.path)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                sys.exit(f"{url.geturl()}: {answer.status} {body[:200]!r}")
            file.write(body)


def connect(host: str, port: int) -> http.client.HTTPConnection:
    """Connects once the exporter listens; waits at most ten seconds."""
    deadline = time.monotonic() + 10
    while True:
        connection = http.client.HTTPConnection(host, port, timeout=10)
        try:
            connection.connect()
            return connection
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    main()
