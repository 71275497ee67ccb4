"""Writes the features into which a method separates faces (`Method.features`): one Parquet file for each cell.

One row for each face, refused ones as well, in the order of the archive. Columns: ``id``, ``identity``, ``status``,
``reason``, the annotated attributes (``attribute.<name>``), and a vector ``features.<name>`` for each feature, which is
NaN for a refused face.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masquerade.core import discovery, face_tables
from masquerade.core.annotations import ANNOTATION
from masquerade.core.errors import ProtocolError
from masquerade.core.face_tables import FEATURES
from masquerade.core.images import OK, REFUSED, FaceArchive, Faces
from masquerade.methods import Method
from masquerade.pipeline import anonymization
from masquerade.pipeline.anonymization import Refusal

KEPT = ("id", "identity", "status", "reason")
"""Columns of the index that are kept."""


def write(
    archive: FaceArchive, output: Path, method: Method, split: str, batch: int, metadata: Mapping[str, object]
) -> None:
    """Write the features of every face of ``split``. ``metadata``: the cell, as plain JSON values.

    Raises ProtocolError if the method gives no features, or features of a wrong type or shape.
    """
    rows = archive.select(split, status=None)
    kept = [name for name in rows if name in KEPT or name.startswith(ANNOTATION)]
    table = rows[kept].set_index("id", drop=False)
    vectors: dict[str, dict[str, np.ndarray]] = {}
    for faces in archive.batches(batch, split):
        for part, features in anonymization.apply_or_refuse(method.features, faces):
            if isinstance(features, Refusal):
                table.loc[part.ids, ["status", "reason"]] = REFUSED, features.reason
                continue
            for name, values in _check_features(features, part, method).items():
                vectors.setdefault(name, {}).update(zip(part.ids, values, strict=True))
    faces_with_features = table.index[table["status"] == OK]
    columns = {
        FEATURES + name: np.stack([by_face[face] for face in faces_with_features]) for name, by_face in vectors.items()
    }
    face_tables.write_table(table, output, columns, metadata)


def _check_features(features: dict[str, np.ndarray], faces: Faces, method: Method) -> dict[str, np.ndarray]:
    module = discovery.find_name(type(method))
    if not features:
        raise ProtocolError(f"methods/{module}.py gives no features, and a figure of its clusters needs some.")
    for name, values in features.items():
        if values.dtype != np.float32 or values.ndim != 2 or len(values) != len(faces):
            raise ProtocolError(
                f"methods/{module}.py must give the feature '{name}' as float32 ({len(faces)}, D); it gave "
                f"{values.dtype} {values.shape}."
            )
    return features
