"""Reads Iceberg tables with DuckDB; a program, since it needs another version of DuckDB than the other tests.

`iceberg_by_duckdb.py EXTENSIONS` executes each line of standard input as SQL, and prints each result as a line of
JSON. EXTENSIONS is the folder into which the extensions' packages were installed.
"""

import json
import sys
from pathlib import Path

import duckdb

offline = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
with duckdb.connect(config=offline) as connection:
    for name in ("avro", "iceberg"):
        (file,) = Path(sys.argv[1]).glob(f"duckdb_extension_{name}/**/{name}.duckdb_extension")
        connection.execute(f"LOAD '{file}'")
    connection.execute("SET TimeZone = 'UTC'")
    for sql in sys.stdin:
        print(json.dumps(connection.sql(sql).fetchall(), default=str))
