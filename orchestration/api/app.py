"""The HTTP application: health, work, and what the domains add.

It has no logic of its own: an endpoint is a plain `def` that opens its service, calls the function that the
command calls, and answers with a pydantic model of its module. What happens around every route, without its
doing: access (`access.py`), limits (`limits.py`), parameters (`parameters.py`), errors as problems
(`problem.py`), request id, headers and log (`frame.py`).
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from domain.shared.error import PerennialError
from orchestration.api import health, metrics, pipelines, quality, stream, work
from orchestration.api.access import Access
from orchestration.api.description import describe, operation_id
from orchestration.api.frame import Calls, Frame, cleaner
from orchestration.api.limits import Limits
from orchestration.api.parameters import require_good_parameters
from orchestration.api.problem import answer_to
from orchestration.api.recent import Recent
from orchestration.health import overview
from orchestration.registry import MODULES, enabled
from orchestration.settings import Settings

TAGS = {
    "health": "Whether this process lives and can work, and what is unhealthy.",
    "work": "Work items: what to do, how often it was tried, why it waits or failed.",
    "pipelines": "What follows from one upload, scrape or request, under one id.",
}
"""What the routes of each tag are for. A domain's tag is its name, and its module says what it is."""


def build_app(settings: Settings) -> FastAPI:
    """Return the application for these settings."""
    app = FastAPI(
        title="Perennial",
        summary="Keeps data alive: every partition healthy, being healed, or explained.",
        docs_url=None,  # FastAPI's pages load scripts from other hosts
        redoc_url=None,
        # A client that does not follow a redirect would lose its upload without an error.
        redirect_slashes=False,
        dependencies=[Depends(require_good_parameters)],
        generate_unique_id_function=operation_id,
        version=version("perennial"),
        openapi_tags=[{"name": name, "description": text} for name, text in _tags(settings).items()],
    )
    describe(app, needs_token=settings.api_has_token)
    clean = cleaner(settings)
    # The last one added is the outermost.
    app.add_middleware(Access, settings=settings)
    app.add_middleware(Limits, rate=settings.api_rate)
    calls = Calls()
    app.add_middleware(Frame, clean=clean, calls=calls)

    def answer(_: Request, error: Exception) -> Response:
        return answer_to(error, clean) or Response(status_code=500)

    for kind in (PerennialError, HTTPException, RequestValidationError, ClientDisconnect):
        app.add_exception_handler(kind, answer)
    seen = Recent(lambda: overview(settings))
    app.include_router(health.routes(settings, seen))
    app.include_router(metrics.routes(settings, seen, calls.registry))
    for part in (work, pipelines, quality):
        app.include_router(part.routes(settings))
    app.state.hub = stream.open_hub(settings)
    app.include_router(stream.routes(app.state.hub))
    for domain in enabled(settings):
        if domain.routes is not None:
            app.include_router(domain.routes(settings))
    return app


def _tags(settings: Settings) -> dict[str, str]:
    return TAGS | {name: (import_module(MODULES[name]).__doc__ or "").strip() for name in settings.domains}
