# SPDX-License-Identifier: Apache-2.0
"""Cards that a text does not keep apart by itself: of two hosts in one text, of two UUIDs at one index, inside comments."""

from __future__ import annotations

from muster.adapters.nvidia.tests.conftest import Ask
from muster.adapters.nvidia.tests.test_no_values import UUID, sample
from muster.domain.model.source import Outcome

LIST = "".join(f"GPU {place}: NVIDIA H100 80GB HBM3 (UUID: {UUID.format(place)})\n" for place in range(2))
XML = "<?xml version='1.0' ?>\n<nvidia_smi_log>\n<attached_gpus>{}</attached_gpus>\n{}\n</nvidia_smi_log>\n"
TABLE = """\
| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:{}:00.0 Off |                    0 |
| N/A   3{}C    P0              71W / 700W |       1MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""


def gpu(bus: str, card: int, more: str = "", attributes: str = "") -> str:
    return f'<gpu{attributes} id="00000000:{bus}:00.0"><product_name>NVIDIA H100</product_name><uuid>{UUID.format(card)}</uuid>{more}</gpu>\n'


def test_two_hosts_in_one_list(ask: Ask) -> None:
    told = ask(LIST + LIST.replace("GPU-5a", "GPU-6b"))

    assert (len(told.cards), told.told.complete) == (4, False)
    assert "stands for several cards" in told.told.detail


def test_a_list_told_twice_is_one(ask: Ask) -> None:
    told = ask(LIST + LIST)

    assert (len(told.cards), told.told.complete, told.told.detail) == (2, True, "")


def test_two_hosts_in_one_table(ask: Ask) -> None:
    told, again = ask(TABLE.format("4B", 3) + TABLE.format("5C", 6)), ask(TABLE.format("4B", 3) + TABLE.format("4B", 3))

    assert told.values("temperature.core") == [33, 36]
    assert not told.told.complete
    assert "stands for several cards" in told.told.detail
    assert (again.values("temperature.core"), again.told.complete) == ([33], True)


def test_rows_of_one_index_with_other_serials(ask: Ask) -> None:
    told = ask("index, serial, temperature.gpu\n0, 1652022000001, 31\n0, 1652022000002, 32\n")

    assert told.values("temperature.core") == [31, 32]
    assert not told.told.complete


def test_two_uuids_at_one_index_of_a_page_do_not_mix(ask: Ask) -> None:
    told = ask(sample("DCGM_FI_DEV_GPU_TEMP", "45") + sample("DCGM_FI_DEV_GPU_TEMP", "46", 7) + sample("DCGM_FI_DEV_POWER_USAGE", "146", 7))

    assert told.values("temperature.core") == [45, 46]
    assert told.values("power.draw") == [None, 146]


def test_a_garbled_uuid_of_a_page_is_of_the_card_at_its_index(ask: Ask) -> None:
    told = ask(sample("DCGM_FI_DEV_POWER_USAGE", "146", UUID="GPU-5a0e7d1\x01") + sample("DCGM_FI_DEV_GPU_TEMP", "45"))

    assert told.values("power.draw") == [146]


def test_cards_without_uuid_are_kept_apart_by_their_host(ask: Ask) -> None:
    told = ask(sample("DCGM_FI_DEV_GPU_TEMP", "45", UUID="") + sample("DCGM_FI_DEV_GPU_TEMP", "46", UUID="", Hostname="n2"))

    assert told.values("temperature.core") == [45, 46]


def test_elements_in_comments_and_plain_text_are_no_cards(ask: Ask) -> None:
    name = f"<processes><process_info><pid>12</pid><process_name><![CDATA[{gpu('99', 9)}]]></process_name></process_info></processes>"
    told = ask(XML.format(1, f"<!-- {gpu('98', 8)} -->{gpu('01', 0, name)}"))
    cut = ask(XML.format(1, f"<!-- {gpu('98', 8)} -->{gpu('01', 0, name)}").partition("</nvidia_smi_log>")[0])

    assert [told.names(card)["pci_address"] for card in told.cards] == ["0000:01:00.0"]
    assert told.told.complete
    assert len(cut.cards) == 1
    assert len(ask(XML.format(1, gpu("01", 0) + f"<!-- {gpu('98', 8)}").partition("</nvidia_smi_log>")[0]).cards) == 1


def test_a_comment_that_never_ends_hides_no_card_of_a_whole_listing(ask: Ask) -> None:
    assert len(ask(XML.format(2, gpu("01", 0) + "<!-- " * 50_000 + gpu("02", 1))).cards) == 2


def test_a_card_with_other_attributes(ask: Ask) -> None:
    told = ask(XML.format(2, gpu("01", 0, attributes=' foo="1"') + gpu("02", 1)))

    assert [told.names(card)["pci_address"] for card in told.cards] == ["0000:01:00.0", "0000:02:00.0"]
    assert told.told.complete


def test_more_cards_than_attached(ask: Ask) -> None:
    told = ask(XML.format(1, gpu("01", 0) + gpu("02", 1)))

    assert (told.told.outcome, told.told.complete, told.told.detail) == (Outcome.PARTIAL, False, "1 cards attached, 2 shown")
