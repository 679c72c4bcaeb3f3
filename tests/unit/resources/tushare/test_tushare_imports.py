"""A process that never fetches pays for nothing that only a fetch needs."""

import subprocess
import sys

HEAVY = ("tushare", "pandas", "dagster", "bs4", "alembic", "sandbox")


def test_import__client__loads_neither_the_package_nor_pandas() -> None:
    program = (
        "import sys\n"
        "import resources.sandbox.process\n"
        "from resources.tushare.client import TushareClient\n"
        "from resources.tushare.pace import Pacer\n"
        "TushareClient(url=None, token='x' * 20, points=0, pacer=Pacer(None, per_minute=1)).close()\n"
        f"print(*sorted(set(sys.modules) & set({HEAVY})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
