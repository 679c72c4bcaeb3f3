"""The order in which rows are written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from domain.shared.table import Table


def ordered(table: Table, frame: pa.Table) -> pa.Table:
    """The rows in the table's order. Those that come in it are not copied."""
    import pyarrow.compute as pc  # it takes longer than a look at the lake, which needs none of this

    places = pc.sort_indices(frame, [(name, "ascending") for name in table.sort_order]).to_numpy()
    return frame if bool(np.all(places[1:] > places[:-1])) else frame.take(pa.array(places))
