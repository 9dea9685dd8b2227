"""Results of commands: documents of JSON, and the findings of an analysis."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _gleaner
from ._frames import needed

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Document(Mapping[str, Any]):
    """A command's JSON document, read like a dict."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._content: dict[str, Any] | None = None

    @property
    def json(self) -> str:
        """Text of the document: byte for byte the command's output."""
        return self._text

    def __getitem__(self, key: str) -> Any:
        return self._parsed()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parsed())

    def __len__(self) -> int:
        return len(self._parsed())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Document) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"<gleaner.{type(self).__name__}: {', '.join(self)}>"

    def _parsed(self) -> dict[str, Any]:
        # Only on demand: the text of a large fleet is long, and may only be written to a file.
        if self._content is None:
            self._content = json.loads(self._text)
        return self._content


class Findings(Document):
    """Findings of an analysis: for each measure a list of flat records, with units in the names of their fields.

    ``findings["dips"]`` is such a list; :meth:`arrow`, :meth:`pandas` and :meth:`polars` make tables of it.
    ``findings["missing_measures"]`` has the measures that the dataset cannot give, with the reasons.

    If the records of single hosts are in Parquet files, ``findings["records"]`` names the files. The lists then have only
    records of several hosts; the tables have all records, and read a measure's file when they are made.
    """

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the analysis: every threshold from which the figures are computed."""
        return dict(self["parameters"])

    @property
    def measures(self) -> list[str]:
        """Keys of the measures that have records."""
        in_files = {file["measure"] for file in self._files()}
        return [key for key, value in self.items() if isinstance(value, list) and (value or key in in_files)]

    def file(self, measure: str) -> Path | None:
        """Parquet file with a measure's records of single hosts, for lazy readers such as ``polars.scan_parquet``.

        ``None`` if the findings have these records themselves, or if there are none.
        """
        for file in self._files():
            if file["measure"] == measure:
                return Path(self["records"]["folder"]) / str(file["file"])
        return None

    def arrow(self, measure: str) -> pyarrow.Table:
        """Records of a measure as a ``pyarrow.Table``; its columns and types are the same if there are no records.

        Raises KeyError if the findings have no such measure.
        """
        pa = needed("pyarrow", "arrow")
        records = self._records(measure)
        types = _types(measure)
        file = self.file(measure)
        of_hosts = None if file is None else needed("pyarrow.parquet", "arrow").read_table(file)
        first = of_hosts.column_names if of_hosts is not None else records[0] if records else ()
        names = dict.fromkeys([*first, *types])
        schema = pa.schema([(name, _arrow_type(pa, types[name])) for name in names])
        table = pa.Table.from_pylist(records, schema=schema)
        return table if of_hosts is None else pa.concat_tables([of_hosts.cast(schema), table])

    def pandas(self, measure: str) -> pandas.DataFrame:
        """Records of a measure as a pandas ``DataFrame``."""
        needed("pandas", "pandas")
        frame: pandas.DataFrame = self.arrow(measure).to_pandas()
        return frame

    def polars(self, measure: str) -> polars.DataFrame:
        """Records of a measure as a Polars ``DataFrame``."""
        frame: polars.DataFrame = needed("polars", "polars").from_arrow(self.arrow(measure))
        return frame

    def _files(self) -> list[dict[str, Any]]:
        """Files with the records of single hosts; none if the findings have these records themselves."""
        files: list[dict[str, Any]] = self.get("records", {}).get("files", [])
        return files

    def _records(self, measure: str) -> list[dict[str, Any]]:
        records = self.get(measure)
        if not isinstance(records, list):
            raise KeyError(measure)
        return records

    def __repr__(self) -> str:
        in_file = [file["rows_count"] for file in self._files() if file["measure"] == "hosts"]
        hosts = len(self["hosts"]) + sum(in_file)
        return f"<gleaner.Findings of {hosts} hosts: {', '.join(self.measures)}>"


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(_gleaner.run(["schema", "--as", "findings"]))
    return schema


def _types(measure: str) -> dict[str, Any]:
    """Type of each field of a measure's records, as nested names: ``"integer"``, ``["string"]``, ``{"name": "string"}``."""
    fields: dict[str, Any] = _kind(_schema()["properties"][measure])[0]
    return fields


def _kind(schema: dict[str, Any]) -> Any:
    if reference := schema.get("$ref"):
        return _kind(_schema()["$defs"][reference.rsplit("/", 1)[1]])
    kinds = schema.get("type", "string")  # an enumeration of texts may have no type of its own
    kind = next(kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null")
    if kind == "array":
        return [_kind(schema["items"])]
    if kind == "object":
        return {name: _kind(field) for name, field in schema["properties"].items()}
    return kind


def _arrow_type(pa: Any, kind: Any) -> Any:
    if isinstance(kind, list):
        return pa.list_(_arrow_type(pa, kind[0]))
    if isinstance(kind, dict):
        return pa.struct([(name, _arrow_type(pa, field)) for name, field in kind.items()])
    return {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}[kind]
