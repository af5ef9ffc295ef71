"""Log records as lines of JSON."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One line of JSON for each record, with everything that its ``extra`` has.

    Workers log with ``task_id``, ``attempt``, ``method`` and ``worker``. ::

        handler = logging.StreamHandler()
        handler.setFormatter(taskledger.JsonFormatter())
        logging.basicConfig(level=logging.INFO, handlers=[handler])
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "timestamp": datetime.fromtimestamp(record.created, timezone.utc).isoformat(),
            "level": record.levelname,
            "message": record.getMessage(),
            "logger": record.name,
        }
        line.update({name: value for name, value in vars(record).items() if name not in _STANDARD})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
