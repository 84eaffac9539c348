/* SPDX-License-Identifier: Apache-2.0
 *
 * A management library of ours for tests: the functions that library.py of the adapter calls, with invented values.
 *
 *   DCMI_SHIM_CARDS   number of cards (default 2)
 *   DCMI_SHIM_CHIPS   chips per card (default 1); behind them a controller is listed that is no chip
 *   DCMI_SHIM_ADDRESS "shared": the chips of a card have one PCI address
 *   DCMI_SHIM_RC      "function=code,function=code": what these functions return (no value is written)
 *   DCMI_SHIM_HANG    a function that never returns
 *   -DWITHOUT_NEW     leaves out what old drivers lack
 *   -DWITHOUT_HBM     leaves out the HBM functions
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTER(name) do { int code_ = enter(name); if (code_ != 0) return code_; } while (0)

struct chip_info { char chip_type[32], chip_name[32], chip_ver[32]; unsigned int aicore_cnt; };
struct chip_info_v2 { struct chip_info old; char npu_name[32]; };
struct pcie { unsigned int venderid, subvenderid, deviceid, subdeviceid; int domain; unsigned int bus, device, function; unsigned char reserve[32]; };
struct die { unsigned int words[5]; };
struct hbm { unsigned long long size; unsigned int freq; unsigned long long usage; int temp; unsigned int bandwidth; };
struct memory { unsigned long long size, available; unsigned int freq; unsigned long hugepage, total, free_; unsigned int used; unsigned char reserve[60]; };
struct ecc { int enabled; unsigned int single, twice, total_single, total_twice, pages_single, pages_twice, next_single, next_twice; };
struct board { unsigned int board_id, pcb_id, bom_id, slot_id; };
struct label { char product_name[256], model[256], manufacturer[256], manufacturer_date[256], serial_number[256]; };
struct process { int pid; unsigned long bytes; };

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int enter(const char *name)
{
    const char *hang = getenv("DCMI_SHIM_HANG"), *codes = getenv("DCMI_SHIM_RC");
    size_t length = strlen(name);
    if (hang && strcmp(hang, name) == 0)
        for (;;)
            pause();
    for (; codes && *codes; codes = strchr(codes, ',') ? strchr(codes, ',') + 1 : "")
        if (strncmp(codes, name, length) == 0 && codes[length] == '=')
            return atoi(codes + length + 1);
    return 0;
}

static int chips(void) { return number("DCMI_SHIM_CHIPS", 1); }
static int serial(int card, int device) { return card * chips() + device; }

int dcmi_init(void) { ENTER("dcmi_init"); return 0; }

int dcmi_get_driver_version(char *text, unsigned int size)
{
    ENTER("dcmi_get_driver_version");
    snprintf(text, size, "24.9.7");
    return 0;
}

int dcmi_get_dcmi_version(char *text, unsigned int size)
{
    ENTER("dcmi_get_dcmi_version");
    snprintf(text, size, "24.9.7-lib");
    return 0;
}

int dcmi_get_card_list(int *count, int *list, int size)
{
    int place;
    ENTER("dcmi_get_card_list");
    *count = number("DCMI_SHIM_CARDS", 2);
    for (place = 0; place < *count && place < size; place++)
        list[place] = place;
    return 0;
}

int dcmi_get_device_id_in_card(int card, int *count, int *mcu, int *cpu)
{
    (void)card;
    ENTER("dcmi_get_device_id_in_card");
    *count = chips() + 1;
    *mcu = chips();
    *cpu = -1;
    return 0;
}

int dcmi_get_device_type(int card, int device, unsigned int *kind)
{
    (void)card;
    ENTER("dcmi_get_device_type");
    *kind = device >= chips();
    return 0;
}

int dcmi_get_device_logic_id(unsigned int *logic, int card, int device)
{
    ENTER("dcmi_get_device_logic_id");
    *logic = (unsigned int)serial(card, device);
    return 0;
}

int dcmi_get_device_phyid_from_logicid(unsigned int logic, unsigned int *physical)
{
    ENTER("dcmi_get_device_phyid_from_logicid");
    *physical = logic;
    return 0;
}

static void chip(struct chip_info *info)
{
    memset(info, 0, sizeof(*info));
    strcpy(info->chip_type, "Ascend");
    strcpy(info->chip_name, chips() > 1 ? "Ascend910" : "910B3");
    strcpy(info->chip_ver, "V1");
    info->aicore_cnt = 20;
}

int dcmi_get_device_chip_info(int card, int device, struct chip_info *info)
{
    (void)card, (void)device;
    ENTER("dcmi_get_device_chip_info");
    chip(info);
    return 0;
}

int dcmi_get_device_pcie_info_v2(int card, int device, struct pcie *info)
{
    const char *address = getenv("DCMI_SHIM_ADDRESS");
    ENTER("dcmi_get_device_pcie_info_v2");
    memset(info, 0, sizeof(*info));
    info->venderid = 0x19e5;
    info->deviceid = chips() > 1 ? 0xd803 : 0xd802;
    info->subvenderid = 0x0200;
    info->subdeviceid = 0x0100;
    info->bus = 0x41 + 2 * (unsigned int)(address ? card : serial(card, device));
    return 0;
}

int dcmi_get_device_die_v2(int card, int device, int kind, struct die *die)
{
    ENTER("dcmi_get_device_die_v2");
    die->words[0] = 0x0A10C0DE;
    die->words[1] = 0x11223344;
    die->words[2] = (unsigned int)kind;
    die->words[3] = 0x55667788;
    die->words[4] = 0x99AA0000u + (unsigned int)serial(card, device);
    return 0;
}

int dcmi_get_device_board_info(int card, int device, struct board *board)
{
    (void)device;
    ENTER("dcmi_get_device_board_info");
    *board = (struct board){0x3B, 1, 2, (unsigned int)card};
    return 0;
}

int dcmi_get_device_elabel_info(int card, int device, struct label *label)
{
    (void)device;
    ENTER("dcmi_get_device_elabel_info");
    memset(label, 0, sizeof(*label));
    strcpy(label->product_name, "Module of ours");
    strcpy(label->manufacturer, "Shim");
    snprintf(label->serial_number, sizeof(label->serial_number), "SHIM77%04d", card);
    return 0;
}

int dcmi_get_device_health(int card, int device, unsigned int *health)
{
    ENTER("dcmi_get_device_health");
    *health = serial(card, device) == 1 ? 1 : 0;
    return 0;
}

int dcmi_get_device_errorcode_v2(int card, int device, int *count, unsigned int *codes, unsigned int size)
{
    ENTER("dcmi_get_device_errorcode_v2");
    *count = serial(card, device) == 1;
    if (*count && size)
        codes[0] = 0x80E01801;
    return 0;
}

int dcmi_get_device_network_health(int card, int device, unsigned int *health)
{
    (void)card, (void)device;
    ENTER("dcmi_get_device_network_health");
    *health = 0;
    return 0;
}

int dcmi_get_device_temperature(int card, int device, int *celsius)
{
    ENTER("dcmi_get_device_temperature");
    *celsius = 40 + serial(card, device);
    return 0;
}

int dcmi_get_device_power_info(int card, int device, int *tenths)
{
    (void)device;
    ENTER("dcmi_get_device_power_info");
    *tenths = 915 + 10 * card;
    return 0;
}

int dcmi_get_device_voltage(int card, int device, unsigned int *hundredths)
{
    (void)card, (void)device;
    ENTER("dcmi_get_device_voltage");
    *hundredths = 88;
    return 0;
}

#ifndef WITHOUT_HBM
int dcmi_get_device_hbm_info(int card, int device, struct hbm *hbm)
{
    ENTER("dcmi_get_device_hbm_info");
    *hbm = (struct hbm){65536, 1600, 3000 + (unsigned long long)serial(card, device), 38, 3};
    return 0;
}
#endif

int dcmi_get_device_memory_info_v3(int card, int device, struct memory *memory)
{
    (void)card, (void)device;
    ENTER("dcmi_get_device_memory_info_v3");
    memset(memory, 0, sizeof(*memory));
    memory->size = 21525;
    memory->available = 19525;
    return 0;
}

int dcmi_get_device_ecc_info(int card, int device, int kind, struct ecc *ecc)
{
    (void)card, (void)device;
    ENTER("dcmi_get_device_ecc_info");
    if (kind != 2)
        return -8255;
    *ecc = (struct ecc){1, 2, 0, 12, 1, 3, 1, 1, 0};
    return 0;
}

int dcmi_get_device_frequency(int card, int device, int kind, unsigned int *mhz)
{
    (void)card, (void)device;
    ENTER("dcmi_get_device_frequency");
    *mhz = kind == 6 ? 1600 : kind == 7 ? 800 : 1800;
    return 0;
}

int dcmi_get_device_utilization_rate(int card, int device, int kind, unsigned int *percent)
{
    (void)card, (void)device;
    ENTER("dcmi_get_device_utilization_rate");
    if (kind > 12)
        return -8255;
    *percent = kind == 2 ? 57 : kind == 10 ? 31 : 4;
    return 0;
}

int dcmi_get_device_resource_info(int card, int device, struct process *rows, int *count)
{
    ENTER("dcmi_get_device_resource_info");
    *count = 1;
    rows[0] = (struct process){4100 + serial(card, device), 1073741824ul};
    return 0;
}

int dcmi_mcu_get_power_info(int card, int *tenths)
{
    (void)card, (void)tenths;
    ENTER("dcmi_mcu_get_power_info");
    return -8255;
}

#ifndef WITHOUT_NEW
int dcmi_get_device_chip_info_v2(int card, int device, struct chip_info_v2 *info)
{
    (void)card, (void)device;
    ENTER("dcmi_get_device_chip_info_v2");
    memset(info, 0, sizeof(*info));
    chip(&info->old);
    return 0;
}
#endif
