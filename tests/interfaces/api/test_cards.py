# SPDX-License-Identifier: Apache-2.0
"""Cards through the API: lists, names, readings, time travel, history and series."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.interfaces.api.fleet import DIGEST, GIB, T0, Clock, card, get, listing, report, small

from muster.wiring.desk import Desk

CARDS = "/api/v1/cards"


def models(page: Any) -> list[str]:
    return [each["model"] for each in page["items"]]


def test_list(api: TestClient) -> None:
    page = get(api, CARDS)

    assert models(page) == ["Acme X1", "Acme X1", "Acme Duo", "Beta F", "Beta F"]
    assert [each["node"] for each in page["items"]] == ["node-a", "node-a", "node-a", "node-b", "node-c"]
    assert page["total"] == 5
    assert page["next"] is None
    assert page["at"] == "2026-09-21T14:13:20Z"


def test_displays_only_when_asked_for(api: TestClient) -> None:
    assert models(get(api, CARDS, role="display")) == ["Onboard VGA"]
    assert models(get(api, CARDS, filter='role == "display"')) == ["Onboard VGA"]
    assert get(api, CARDS, role="any")["total"] == 6


def test_readings_tell_value_or_absence_with_source_and_age(api: TestClient, clock: Clock) -> None:
    clock.now += 100
    whole = get(api, f"{CARDS}/SN-1001")["readings"]
    poor = get(api, f"{CARDS}/SN-1002")["readings"]

    assert whole["memory.total"] == {
        "value": 80 * GIB,
        "unit": "bytes",
        "observed_at": "2026-09-21T14:13:20Z",
        "source": "acme.smi",
        "age": 100.0,
        "stale": True,
        "capture": DIGEST,
    }
    assert whole["throttle.reasons"]["value"] == ["power_cap", "idle"]
    assert poor["memory.total"]["value"] == 0
    absent = {"absent": "not_supported", "detail": "N/A", "observed_at": "2026-09-21T14:13:20Z", "source": "acme.smi", "age": 100.0, "capture": DIGEST}
    assert poor["temperature.core"] == absent
    assert poor["memory.used"]["absent"] == "error"
    assert "power.draw" not in poor


def test_document(api: TestClient) -> None:
    found = get(api, f"{CARDS}/SN-2001")

    assert found["name"] == "node-a · 0000:2b:00.0 · Acme Duo"
    assert (found["presence"], found["role"], found["aside"], found["address"], found["slot"]) == ("present", "accelerator", False, "0000:2b:00.0", None)
    assert found["seen_by"] == ["acme.smi"]
    assert [each["readings"]["temperature.core"]["value"] for each in found["devices"]] == [40, 41]
    assert found["claims"][0]["node"] == "node-a"
    assert get(api, f"{CARDS}/SN-1001")["partitions"][0]["readings"]["partition.profile"]["value"] == "1g.10gb"


@pytest.mark.parametrize(
    "word", ["SN-1001", "sn-1001", "GPU-aaaa1111-0000-4000-8000-000000000001", "0000:1b:00.0", "node-a/1b:00.0", "node-a/0", "NODE-A/0000:1B:00.0"]
)
def test_names(api: TestClient, word: str) -> None:
    assert get(api, f"{CARDS}/{word}")["ids"]["serial"] == ["SN-1001"]


def test_our_id_and_its_beginning(api: TestClient) -> None:
    id_ = get(api, f"{CARDS}/SN-1001")["id"]

    assert get(api, f"{CARDS}/{id_}")["id"] == id_
    assert get(api, f"{CARDS}/{id_[:8]}")["id"] == id_


def test_a_local_name_that_fits_several_is_refused_with_the_candidates(api: TestClient) -> None:
    told = get(api, f"{CARDS}/card0", 400)

    assert told["code"] == "ambiguous"
    assert sorted(each["node"] for each in told["candidates"]) == ["node-b", "node-c"]
    assert "node-b/" in told["detail"]
    assert get(api, f"{CARDS}/node-c/card0")["readings"]["temperature.core"]["value"] == 72


def test_not_found(api: TestClient) -> None:
    told = get(api, f"{CARDS}/SN-404", 404)

    assert told["code"] == "not_found"
    assert told["status"] == 404
    assert told["type"] == "urn:muster:problem:not_found"
    assert told["hint"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("memory.total >= 64Gi", ["Acme X1", "Acme Duo"]),
        ("!(memory.total >= 64Gi)", ["Acme X1"]),
        ("has(memory.total)", ["Acme X1", "Acme X1", "Acme Duo"]),
        ("temperature.core > 50", ["Acme X1", "Beta F", "Beta F"]),
        ("!(temperature.core > 50)", ["Acme Duo"]),
        ('node == "node-a" && model.startsWith("Acme D")', ["Acme Duo"]),
        ('serial == "SN-1001"', ["Acme X1"]),
        ('"power_cap" in throttle.reasons', ["Acme X1"]),
        ("ecc.enabled", ["Acme X1"]),
        ("aside", []),
        ('"acme.smi" in seen_by && rung == "node+address"', ["Beta F", "Beta F"]),
        ('presence_since <= "2026-09-21T14:13:20Z" && !has(slot) && !has(place) && !has(vendor)', ["Acme X1", "Acme X1", "Acme Duo", "Beta F", "Beta F"]),
        ('name.startsWith("node-b")', ["Beta F"]),
        ('findings.startsWith("x")', None),
        ("memory.total >= 64", ["Acme X1", "Acme Duo"]),
        ("memory >= 64", None),
    ],
)
def test_filter(api: TestClient, text: str, found: list[str] | None) -> None:
    if found is None:
        assert get(api, CARDS, 400, filter=text)["code"] == "invalid_input"
    else:
        assert models(get(api, CARDS, filter=text)) == found


@pytest.mark.parametrize("sort", ["temperature.core", "-temperature.core", "-node,-address", "name", "-model,memory.total", "presence_since,-id"])
def test_pages_give_each_card_once_in_order(api: TestClient, sort: str) -> None:
    whole = [each["id"] for each in get(api, CARDS, sort=sort)["items"]]
    found, cursor = [], ""
    while cursor is not None:
        page = get(api, CARDS, sort=sort, limit=2, cursor=cursor)
        found += [each["id"] for each in page["items"]]
        assert page["total"] == 5
        cursor = page["next"]

    assert found == whole
    assert len(set(found)) == 5


def test_absent_comes_last_both_ways(api: TestClient) -> None:
    up = [each["readings"].get("power.draw", {}).get("value") for each in get(api, CARDS, sort="power.draw")["items"]]
    down = [each["readings"].get("power.draw", {}).get("value") for each in get(api, CARDS, sort="-power.draw")["items"]]

    assert up == [30, 30, 300.5, None, None]
    assert down == [300.5, 30, 30, None, None]


def test_devices_speak_together_where_their_card_does_not(api: TestClient) -> None:
    duo, whole = (get(api, f"{CARDS}/{name}") for name in ("SN-2001", "SN-1001"))

    assert duo["together"] == {
        "memory.total": {"value": 64 * GIB, "unit": "bytes", "how": "sum of devices"},
        "memory.used": {"value": 9, "unit": "bytes", "how": "sum of devices"},
        "temperature.core": {"value": 41, "unit": "celsius", "how": "most of devices"},
    }
    assert "memory.total" not in duo["readings"]
    assert whole["together"] == {}
    assert get(api, CARDS, sort="temperature.core", fields="together")["items"][0]["id"] == duo["id"]
    assert models(get(api, CARDS, filter="temperature.core == 41")) == ["Acme Duo"]


def test_devices_that_do_not_all_speak_say_nothing_together(api: TestClient, desk: Desk) -> None:
    board = card(0, {"product.name": "Acme Duo", "power.draw": 9}, serial="SN-3001")
    devices = [
        card(
            n,
            {"temperature.core": 40, "power.draw": 5} if n else {"power.draw": 5},
            level="device",
            parent=[("serial", "SN-3001")],
            vendor_uuid=f"beef-{n:012}",
        )
        for n in (0, 1)
    ]
    desk.report(report("node-d", listing(board, *devices)))

    assert get(api, f"{CARDS}/SN-3001")["together"] == {}


def test_default_order_is_natural(api: TestClient, desk: Desk) -> None:
    for node in ("rack-10", "rack-9"):
        addresses = ("0000:1b:00.0", "0000:0a:00.0", "0000:05:00.0")
        desk.report(report(node, listing(*(card(n, {"product.name": "P"}, pci_address=address) for n, address in enumerate(addresses)))))
    wanted = [(node, f"0000:{bus}:00.0") for node in ("rack-9", "rack-10") for bus in ("05", "0a", "1b")]

    assert [(each["node"], each["address"]) for each in get(api, CARDS, filter='node.startsWith("rack")')["items"]] == wanted
    found, cursor = [], ""
    while cursor is not None:
        page = get(api, CARDS, filter='node.startsWith("rack")', limit=1, cursor=cursor)
        found += [(each["node"], each["address"]) for each in page["items"]]
        cursor = page["next"]
    assert found == wanted


def test_unknown_parameters_are_refused(api: TestClient) -> None:
    told = get(api, CARDS, 400, filtr="x")

    assert told["code"] == "invalid_input"
    assert "'filtr'" in told["detail"]
    assert "'filter'" in told["hint"]
    assert get(api, "/healthz", 400, verbose="1")["hint"] == "it takes none"
    assert get(api, f"{CARDS}/SN-1001", 400, sort="name")["code"] == "invalid_input"


def test_a_page_goes_on_where_it_stopped_though_rows_came_and_went(api: TestClient, desk: Desk) -> None:
    first = get(api, CARDS, limit=3)
    desk.report(small("node-a0", 20, "0000:04:00.0"))
    desk.report(small("node-bb", 20, "0000:05:00.0"))
    second = get(api, CARDS, limit=10, cursor=first["next"])

    assert [each["node"] for each in second["items"]] == ["node-a0", "node-b", "node-bb", "node-c"]
    assert not {each["id"] for each in first["items"]} & {each["id"] for each in second["items"]}


@pytest.mark.parametrize("cursor", ["x", "e30", "WyJhIl0", "[]", "£"])
def test_a_strange_cursor_is_refused(api: TestClient, cursor: str) -> None:
    assert get(api, CARDS, 400, cursor=cursor)["code"] == "invalid_input"


def test_a_cursor_of_another_list_is_refused(api: TestClient) -> None:
    cursor = get(api, CARDS, limit=1)["next"]

    get(api, CARDS, 400, cursor=cursor, sort="name")
    get(api, CARDS, 400, cursor=cursor, filter="aside")
    get(api, "/api/v1/devices", 400, cursor=cursor)


def test_fields(api: TestClient) -> None:
    found = get(api, CARDS, fields="name,memory.total,readings.temperature.core", filter='serial == "SN-1002"')["items"][0]

    assert found.keys() == {"id", "name", "readings"}
    assert found["readings"].keys() == {"memory.total", "temperature.core"}
    assert get(api, CARDS, 400, fields="name,nonsense")["code"] == "invalid_input"
    assert get(api, "/api/v1/sources", 400, fields="memory.total")["code"] == "invalid_input"


def say(desk: Desk, clock: Clock, after: float, sequence: int, power: float) -> None:
    """node-b tells its card's power so many seconds after the start."""
    clock.now = T0 + after
    told = card(0, {"product.name": "Beta F", "power.draw": power}, pci_address="0000:03:00.0", index="card0")
    desk.report(report("node-b", listing(told, at=clock.now), sequence=sequence, at=clock.now))


def test_at(api: TestClient, desk: Desk, clock: Clock) -> None:
    say(desk, clock, 300, 2, 30)
    say(desk, clock, 600, 3, 99)

    assert get(api, f"{CARDS}/node-b/card0")["readings"]["power.draw"]["value"] == 99
    assert get(api, f"{CARDS}/node-b/card0", at="-4m")["readings"]["power.draw"]["value"] == 30
    assert get(api, CARDS, at="2026-09-21T14:13:00Z")["items"] == []
    assert "node-b" in {each["node"] for each in get(api, CARDS, at="-4m", sort="-power.draw", filter="power.draw == 30")["items"]}
    assert get(api, CARDS, at="-9m")["at"] == "2026-09-21T14:14:20Z"
    assert get(api, CARDS, 400, at="2030-01-01T00:00:00Z")["code"] == "invalid_input"
    assert get(api, f"{CARDS}/node-b/card0", 404, at="2026-09-21T14:13:00Z")["code"] == "not_found"


def test_a_cursor_keeps_the_time_of_its_first_page(api: TestClient, clock: Clock) -> None:
    first = get(api, CARDS, limit=2, at="-0s")
    clock.now += 500

    assert get(api, CARDS, limit=2, at="-0s", cursor=first["next"])["at"] == first["at"]


def test_a_joined_card_answers_with_the_card_it_is_now(api: TestClient, desk: Desk) -> None:
    api.post("/api/v1/acts", json={"what": "store", "by": "ann", "card": {"serial": "SN-ON-THE-SHELF"}, "place": "B3"})
    both = [get(api, f"{CARDS}/{name}")["id"] for name in ("SN-1002", "SN-ON-THE-SHELF")]
    answer = api.post("/api/v1/acts", json={"what": "same", "by": "ann", "card": both[0], "other": both[1]})

    assert answer.status_code == 200, answer.text
    now = {get(api, f"{CARDS}/{id_}")["id"] for id_ in both}
    assert len(now) == 1
    assert now < set(both)


def test_history(api: TestClient) -> None:
    page = get(api, f"{CARDS}/SN-1001/history")

    assert page["items"][0]["kind"] == "installed"
    assert sorted(page["items"][0]["names"].values()) == ["node-a", "node-a · 0000:1b:00.0 · Acme X1"]
    assert page["items"][0]["at"] == "2026-09-21T14:13:20Z"
    assert page["next"] is None
    assert get(api, f"{CARDS}/SN-1001/history", sort="-number")["items"] == page["items"][::-1]
    get(api, f"{CARDS}/SN-404/history", 404)


def test_changes(api: TestClient) -> None:
    whole = get(api, "/api/v1/changes")["items"]
    numbers = [each["number"] for each in whole]

    assert len(numbers) > 5
    assert numbers == sorted(numbers)
    for sort in ("number", "-number"):
        found: list[int] = []
        cursor: str | None = ""
        while cursor is not None:
            page = get(api, "/api/v1/changes", limit=2, sort=sort, cursor=cursor)
            found += [each["number"] for each in page["items"]]
            cursor = page["next"]
        assert found == (numbers if sort == "number" else numbers[::-1])
    assert get(api, "/api/v1/changes", after=numbers[2])["items"] == whole[3:]
    assert get(api, "/api/v1/changes", filter='kind == "installed" && number > 1', limit=2, sort="-number")["items"] == whole[-1:-3:-1]
    assert get(api, "/api/v1/changes", subject=whole[0]["subject"])["items"] == [each for each in whole if each["subject"] == whole[0]["subject"]]
    assert get(api, f"/api/v1/changes/{numbers[0]}") == whole[0]
    assert get(api, "/api/v1/changes", at="2026-09-21T14:00:00Z")["items"] == []
    get(api, "/api/v1/changes/999999", 404)
    get(api, "/api/v1/changes", 400, sort="kind")
    get(api, "/api/v1/changes", 400, cursor="e30")


def test_series(api: TestClient, desk: Desk, clock: Clock) -> None:
    say(desk, clock, 70, 2, 60)
    say(desk, clock, 80, 3, 70)
    say(desk, clock, 130, 4, 50)
    told = get(api, f"{CARDS}/node-b/card0/series", key="power.draw")

    assert told["unit"] == "watt"
    points = [(each["mean"], each["low"], each["high"], each["last"], each["count"]) for each in told["points"]]
    assert points[-2:] == [
        (65, 60, 70, 70, 2),
        (50, 50, 50, 50, 1),
    ]
    assert told["points"][-1]["minute"] == "2026-09-21T14:15:00Z"
    device = get(api, f"{CARDS}/SN-2001")["devices"][1]["id"]
    assert get(api, f"{CARDS}/SN-2001/series", key="memory.used", part=device)["subject"] == device
    get(api, f"{CARDS}/SN-2001/series", 400, key="product.name")
    get(api, f"{CARDS}/SN-2001/series", 400, key="temperature.core", part="nothing")
    get(api, f"{CARDS}/SN-2001/series", 400, key="temperature.core", since="-1m", until="-2m")
    get(api, f"{CARDS}/SN-2001/series", 400)


def test_what_others_say_stands_beside_the_value(api: TestClient, desk: Desk) -> None:
    said = {"firmware.version": "2.0", "power.draw": ("a", "not_permitted", "log in")}
    bmc = listing(card(0, said, serial="SN-1001"), source="redfish", channel="out_of_band", witness="bmc")
    driver = listing(card(0, {"firmware.version": "1.0"}, serial="SN-1001", pci_address="0000:1b:00.0", index="0"), source="acme.lib")
    desk.report(report("node-a", bmc, driver, sequence=2))
    readings = get(api, f"{CARDS}/SN-1001")["readings"]

    assert (readings["firmware.version"]["value"], readings["firmware.version"]["dissent"]) == ("1.0", {"redfish": "2.0"})
    assert (readings["power.draw"]["value"], readings["power.draw"]["absent"]) == (300.5, {"redfish": "not_permitted"})
