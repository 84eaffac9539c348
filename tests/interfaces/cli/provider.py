# SPDX-License-Identifier: Apache-2.0
"""An OpenID provider with the device grant, on authlib's own server side, in a thread on loopback. Tests say what the person at the browser does."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from typing import Any

from flask import Flask, jsonify, request
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from werkzeug.serving import make_server

_flask = importlib.import_module("authlib.integrations.flask_oauth2")  # by name, as the package has no types
_device = importlib.import_module("authlib.oauth2.rfc8628")
CLIENT = "muster"
GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class Client:
    """A public client that may use the device grant."""

    client_id = CLIENT

    def get_client_id(self) -> str:
        """Its name."""
        return self.client_id

    def get_allowed_scope(self, scope: str) -> str:
        """All of it."""
        return scope

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """It has no secret."""
        return method == "none"

    def check_grant_type(self, grant_type: str) -> bool:
        """The device grant alone."""
        return grant_type == GRANT


class Provider:
    """The provider. ``granted`` is what the person decided: None yet nothing, True, False."""

    def __init__(self) -> None:
        self.keys: dict[str, RSAKey | ECKey] = {"k1": RSAKey.generate_key(2048, {"kid": "k1"}), "e1": ECKey.generate_key("P-256", {"kid": "e1"})}
        self.signing = "k1"
        self.granted: bool | None = None
        self.claims: dict[str, Any] = {"email": "ann@example.org", "email_verified": True, "groups": ["staff", "gpu-ops"]}
        self.polls: list[str] = []
        self.credentials: dict[str, Any] = {}
        self.slow = 0
        self.broken = 0
        self.lifetime = 600
        self.interval = 5
        self.after: Callable[[int], None] = lambda polls: None
        self.fetched = 0
        self.nonce = True
        self.app = self._app()
        self.server = make_server("127.0.0.1", 0, self.app, threaded=True)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it; once more is nothing."""
        if self._thread.is_alive():
            self.server.shutdown()
            self._thread.join()
            self.server.server_close()

    def id_token(self, **changed: Any) -> str:
        """An identity token, with claims changed; None takes one away."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": "s-1", "iat": now, "exp": now + 300, **self.claims, **changed}
        key = self.keys[self.signing]
        algorithm = "RS256" if isinstance(key, RSAKey) else "ES256"
        return jwt.encode({"alg": algorithm, "kid": self.signing}, {k: v for k, v in claims.items() if v is not None}, key)

    def jwks(self) -> dict[str, Any]:
        """The halves of its keys that everybody may have."""
        return {"keys": [key.as_dict(private=False, use="sig") for key in self.keys.values()]}

    def _app(self) -> Flask:
        app = Flask("provider")
        server = _flask.AuthorizationServer(app, query_client=lambda name: Client() if name == CLIENT else None, save_token=lambda token, request: None)
        server.register_grant(_grant(self))
        server.register_endpoint(_endpoint(self))
        app.add_url_rule("/.well-known/openid-configuration", view_func=lambda: jsonify(self._about()), endpoint="about")
        app.add_url_rule("/jwks", view_func=self._jwks, endpoint="jwks")
        app.add_url_rule("/device", view_func=lambda: server.create_endpoint_response("device_authorization"), methods=["POST"], endpoint="device")
        app.add_url_rule("/token", view_func=lambda: self._token(server), methods=["POST"], endpoint="token")
        return app

    def _about(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/jwks",
            "token_endpoint": f"{self.issuer}/token",
            "device_authorization_endpoint": f"{self.issuer}/device",
        }

    def _jwks(self) -> Any:
        self.fetched += 1
        return jsonify(self.jwks())

    def _token(self, server: Any) -> Any:
        self.polls.append("poll")
        self.after(len(self.polls))
        if self.broken:
            self.broken -= 1
            return "<html>gateway</html>", 502
        return server.create_token_response()


def _grant(provider: Provider) -> type[Any]:
    """The grant, with what this provider knows."""

    def save(self: Any, token: dict[str, Any]) -> None:
        token["id_token"] = provider.id_token(**({"nonce": self.request.credential.get("nonce")} if provider.nonce else {}))

    def found(self: Any, code: str) -> Any:
        return provider.credentials.get(code)

    def slow(self: Any, credential: Any) -> bool:
        provider.slow -= 1
        return provider.slow >= 0

    told: dict[str, Any] = {
        "query_device_credential": found,
        "query_user_grant": lambda self, code: None if provider.granted is None else ("s-1", provider.granted),
        "should_slow_down": slow,
        "save_token": save,
    }
    return type("Grant", (_device.DeviceCodeGrant,), told)


def _endpoint(provider: Provider) -> type[Any]:
    """Where a sign-in begins."""

    def save(self: Any, client_id: str, scope: str, data: dict[str, Any]) -> None:
        told = {**data, "client_id": client_id, "scope": scope, "expires_at": time.time() + provider.lifetime, "nonce": request.form.get("nonce")}
        provider.credentials[data["device_code"]] = _device.DeviceCredentialDict(told)

    told: dict[str, Any] = {
        "EXPIRES_IN": property(lambda self: provider.lifetime),
        "INTERVAL": property(lambda self: provider.interval),
        "get_verification_uri": lambda self: f"{provider.issuer}/activate",
        "save_device_credential": save,
    }
    return type("Endpoint", (_device.DeviceAuthorizationEndpoint,), told)
