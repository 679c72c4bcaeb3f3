"""What an interrupt leaves of a file that is being written: nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PARQUET = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
from orchestration.cli.interrupt import handle_interrupts
from orchestration.cli.queries import _parquet_writer
handle_interrupts()
schema = pa.schema({"n": pa.int64()})
def batches():
    yield pa.record_batch({"n": [1]}, schema)
    os.kill(os.getpid(), signal.%s)
    %s
_parquet_writer(Path(sys.argv[1]))(pa.RecordBatchReader.from_batches(schema, batches()))
"""
NOT_FREE = "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 100_000_000)"


@pytest.mark.parametrize("then", ["import time; time.sleep(60)", NOT_FREE], ids=["free", "in C"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sql_parquet__interrupted__leaves_no_file(tmp_path: Path, number: signal.Signals, then: str) -> None:
    program = [sys.executable, "-c", PARQUET % (number.name, then), str(tmp_path / "out.parquet")]
    done = subprocess.run(program, cwd=ROOT, check=False, capture_output=True)
    assert done.returncode == 128 + number, done.stderr.decode()
    assert list(tmp_path.iterdir()) == []
