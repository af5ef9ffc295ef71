"""Client and worker for taskledger, a durable task orchestration server.

``Client`` and ``AsyncClient`` call the server; ``Worker`` and ``AsyncWorker`` carry out its tasks.
"""

from . import errors
from ._attempts import Context
from ._protocol import RetryPolicy
from .async_client import AsyncClient, AsyncEventStream
from .async_worker import AsyncContext, AsyncWorker
from .client import Client, EventStream
from .errors import *
from .logs import JsonFormatter
from .types import Event, RunResult
from .worker import Worker

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncContext",
    "AsyncEventStream",
    "AsyncWorker",
    "Client",
    "Context",
    "Event",
    "EventStream",
    "JsonFormatter",
    "RetryPolicy",
    "RunResult",
    "Worker",
]
__all__ += errors.__all__
