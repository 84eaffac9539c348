# SPDX-License-Identifier: Apache-2.0
"""Settings of the server: a TOML file, environment variables MUSTER_*, and flags; flags win over the environment, the environment over the file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, InitSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from muster.domain.model.errors import InputError
from muster.domain.model.near import near
from muster.domain.model.policy import Policy

PORT = 7460
"""Where the server listens when nothing else is said."""
INGEST_PORT = 7461
"""Where reporters come in when nothing else is said."""
DAY = 86_400.0
_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@|[?&]password=[^&]")


def _words(told: Any) -> Any:
    """A text with commas as its words; an environment variable has no lists."""
    if not isinstance(told, str):
        return told
    return tuple(word for word in (each.strip() for each in told.removeprefix("[").removesuffix("]").replace('"', "").split(",")) if word)


Words: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]


class ServerSettings(BaseSettings):
    """What a server goes by. Times are seconds."""

    model_config = SettingsConfigDict(env_prefix="MUSTER_", extra="forbid", frozen=True, env_ignore_empty=True, hide_input_in_errors=True)

    host: str = Field("127.0.0.1", description="Address to listen on. Beyond loopback everybody needs a token, and everything goes over TLS.")
    port: int = Field(PORT, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    loopback_open: bool = Field(True, description="Programs of this machine come in by loopback without a token, as operators, while nobody else can reach it.")
    ingest_port: int | None = Field(
        None, ge=0, le=65535, description="Port for reporters; 0 takes any free one. Left out: 7461 beyond loopback, and none on loopback alone."
    )
    ingest_connections: int = Field(20_000, ge=1, le=1_000_000, description="Connections of reporters that may be open at once.")
    door: Literal["inside", "apart"] = Field("inside", description="The API in the writer's process, or in one of its own, for large sites.")
    database: str = Field("", repr=False, description="URL of a PostgreSQL database for the store; left out: a file in the state folder.")
    names: Words = Field((), description="Names under which the server is reached beside its machine's own: it answers to no others.")
    tls_certificate: Path | None = Field(None, description="Certificate of your own, PEM with its chain; left out: the server makes one by its own authority.")
    tls_key: Path | None = Field(None, description="Key of that certificate, PEM, readable by the server's user alone.")
    plain_http_beyond_loopback: bool = Field(False, description="Serve without TLS beyond loopback: whoever is on the way reads every token.")
    oidc_issuer: str = Field("", description="Where people sign in (OpenID Connect): the issuer's URL, as it calls itself.")
    oidc_client_id: str = Field("", description="The name under which the issuer knows Muster; a public client with the device grant.")
    oidc_roles: dict[str, str] = Field({}, description="Group to role (viewer, operator, admin); who is in several has the highest, who is in none stays out.")
    oidc_groups_claim: str = Field("groups", min_length=1, description="Claim of the identity token with the groups.")
    oidc_name_claim: str = Field("email", min_length=1, description="Claim by which people are called in the audit.")
    outgoing_networks: dict[str, Words] = Field(
        {}, description="Networks to which the server opens URLs, by kind (yet only oidc); left out: every address but loopback, link-local and metadata."
    )
    outgoing_http: Words = Field((), description="Kinds of URLs that may be opened without TLS.")
    outgoing_ca: Path | None = Field(None, description="Certificates (PEM) that are trusted for URLs the server opens, instead of the system's.")
    state: Path = Field(default_factory=lambda: state_folder(os.environ), description="Folder of the store. Its parent must be there or makeable.")
    runtime: Path = Field(
        default_factory=lambda: runtime_folder(os.environ), description="Folder of the socket and of the file that tells clients where the server is."
    )
    in_memory: bool = Field(False, description="Keep the store in memory: everything is forgotten at the end.")
    settle: float = Field(120.0, gt=0, le=DAY, description="How long an absence or dissent lasts before it is a finding.")
    stale_floor: float = Field(90.0, gt=0, le=DAY, description="A value is stale after three cadences of its source, but never before this.")
    clock_tolerance: float = Field(30.0, gt=0, le=DAY, description="How far a reporter's clock may be off before its times are corrected.")
    compare_within: float = Field(60.0, gt=0, le=DAY, description="Two gauges are held to each other only when read this close together.")
    placeholder_nodes: int = Field(3, ge=2, le=1000, description="A name claimed by so many nodes at once names nothing.")
    late_window: float = Field(7200.0, ge=0, le=30 * DAY, description="Reports older than this against what is known fill gaps and change no history.")
    tick: float = Field(1.0, gt=0, le=60, description="How often silences and settle times are looked at.")
    trim: float = Field(600.0, gt=0, le=DAY, description="How often old roll-ups, events and captures are dropped.")
    long_ranges_elsewhere: bool = Field(False, description="Keep no minute roll-ups: a Prometheus store keeps long ranges.")
    minutes_bytes: int | None = Field(None, ge=0, description="Bytes of minute roll-ups that are kept; left out: a week of them, by the size of the site.")
    captures_bytes: int = Field(256 * 1024 * 1024, ge=0, description="Bytes of packed captures that are kept.")
    keep_minutes: float = Field(400 * DAY, gt=0, description="How long minute roll-ups are kept.")
    keep_events: float = Field(400 * DAY, gt=0, description="How long events are kept.")
    keep_captures: float = Field(30 * DAY, gt=0, description="How long captures are kept that nothing present rests on.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="What is logged at least.")
    log_format: Literal["console", "json"] = Field("console", description="Form of the log on stderr.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, environment, file; nothing else."""
        del dotenv_settings, file_secret_settings
        told = init_settings() if isinstance(init_settings, InitSettingsSource) else {}
        file = told.pop("file_", {})
        return InitSettingsSource(settings_cls, told), env_settings, InitSettingsSource(settings_cls, file)

    def policy(self, known_vendors: frozenset[str], vendor_words: frozenset[str]) -> Policy:
        """The policy of merge with these times."""
        return Policy(
            settle=self.settle,
            stale_floor=self.stale_floor,
            clock_tolerance=self.clock_tolerance,
            compare_within=self.compare_within,
            placeholder_nodes=self.placeholder_nodes,
            late_window=self.late_window,
            known_vendors=known_vendors,
            vendor_words=vendor_words,
        )

    def keep(self) -> dict[str, float]:
        """Seconds by kind, as the store's `trim` takes them."""
        return {"minutes": self.keep_minutes, "events": self.keep_events, "captures": self.keep_captures}


def load_settings(file: Path | None = None, **flags: Any) -> ServerSettings:
    """Settings from a file (the usual places when None), the environment and ``flags`` (those that are None are left out).

    Raises InputError naming the setting that does not fit and where it came from.
    """
    path = file or next((place for place in setting_files(os.environ) if place.is_file()), None)
    told = {name: value for name, value in flags.items() if value is not None}
    try:
        return ServerSettings(**{**told, "file_": _read(path) if path else {}})
    except ValidationError as wrong:
        raise refused(wrong.errors()[0], lambda name: _origin(name, told, path)) from wrong
    except SettingsError as wrong:
        name = next((each for each in ServerSettings.model_fields if f'"{each}"' in str(wrong)), "of the environment")
        raise InputError(f"setting {name} ({_origin(name, told, path)}): a table is wanted, as JSON", hint='like {"name": "value"}') from wrong


def exposed(file: Path | None) -> Path | None:
    """The settings file, where it has a password and every user of the machine can read it."""
    path = file or next((place for place in setting_files(os.environ) if place.is_file()), None)
    if path is None or not path.is_file() or not path.stat().st_mode & 0o004:
        return None
    database = _read(path).get("database")
    if not isinstance(database, str):
        return None
    return path if _PASSWORD.search(database) else None


def refused(wrong: ErrorDetails, origin: Callable[[str], str]) -> InputError:
    """What does not fit, in our words: the setting and where it is from, what is wanted, and what is near a name that there is not."""
    name, *within = (str(part) for part in wrong["loc"])
    field = ServerSettings.model_fields.get(name)
    if field is None:
        hint = near(name, ServerSettings.model_fields) or "`muster config -o wide` lists the settings there are"
        return InputError(f"no setting {name} ({origin(name)})", hint=hint)
    wanted = _wanted(wrong)
    inner = f", at {'.'.join(within)}" if within else ""
    given = f", not {wrong['input']!r:.100}" if field.repr else ""
    return InputError(f"setting {name} ({origin(name)}){inner}: {wanted}{given}", hint=f"{name}: {field.description}")


def _wanted(wrong: ErrorDetails) -> str:
    """What is wanted, by the kind of what is wrong."""
    kind, bounds = wrong["type"], wrong.get("ctx") or {}
    words = {
        "int": "a whole number is wanted",
        "float": "a number is wanted",
        "finite": "a number is wanted",
        "bool": "true or false is wanted",
        "path": "a path is wanted",
        "string_too_short": "a text of one letter or more is wanted",
        "string": "a text is wanted",
        "tuple": 'a list is wanted, like ["one", "two"]',
        "dict": "a table is wanted, with a line for each name",
        "greater_than_equal": f"{bounds.get('ge', 0):g} or more is wanted",
        "greater_than": f"more than {bounds.get('gt', 0):g} is wanted",
        "less_than_equal": f"{bounds.get('le', 0):g} or less is wanted",
        "literal": f"one of {bounds.get('expected', '')} is wanted".replace(" or ", ", "),
    }
    return next((text for begins, text in words.items() if kind.startswith(begins)), wrong["msg"])


def _origin(name: str, told: Mapping[str, Any], path: Path | None) -> str:
    if name in told:
        return f"--{name.replace('_', '-')}"
    return f"MUSTER_{name.upper()}" if f"MUSTER_{name.upper()}" in os.environ else str(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as wrong:
        raise InputError(f"{path}: {wrong.strerror}", hint="name a TOML file with settings") from wrong
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise InputError(f"{path}: {wrong}", hint="settings are lines like: port = 7460") from wrong


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or "~").expanduser()


def setting_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Where a settings file is looked for, first first: MUSTER_CONFIG, the user's, the machine's."""
    named = environment.get("MUSTER_CONFIG")
    config = Path(environment.get("XDG_CONFIG_HOME") or _home(environment) / ".config")
    return (*((Path(named),) if named else ()), config / "muster" / "server.toml", Path("/etc/muster/server.toml"))


def state_folder(environment: Mapping[str, str], *, root: bool | None = None) -> Path:
    """/var/lib/muster for root, else XDG_DATA_HOME/muster."""
    if os.geteuid() == 0 if root is None else root:
        return Path("/var/lib/muster")
    return Path(environment.get("XDG_DATA_HOME") or _home(environment) / ".local" / "share") / "muster"


def runtime_folder(environment: Mapping[str, str], *, root: bool | None = None) -> Path:
    """XDG_RUNTIME_DIR/muster, else /run/muster for root, else ~/.local/state/muster."""
    if environment.get("XDG_RUNTIME_DIR"):
        return Path(environment["XDG_RUNTIME_DIR"]) / "muster"
    if os.geteuid() == 0 if root is None else root:
        return Path("/run/muster")
    return Path(environment.get("XDG_STATE_HOME") or _home(environment) / ".local" / "state") / "muster"
