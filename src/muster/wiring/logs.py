# SPDX-License-Identifier: Apache-2.0
"""Logs of the server's processes, to stderr."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

from muster.wiring.settings import ServerSettings


def configure_logs(settings: ServerSettings) -> None:
    """Logs of this process to stderr, in the form that was asked for."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    last: list[Any] = (
        [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
        if settings.log_format == "json"
        else [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)]
    )
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    structlog.configure(
        processors=[structlog.processors.add_log_level, stamp, *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    foreign: list[Any] = [structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name, stamp]
    shown: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=foreign, processors=shown))
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler])
