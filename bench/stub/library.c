/* SPDX-License-Identifier: Apache-2.0
 *
 * A management library of ours that stands in for a driver's in benchmarks: some cards with invented values, of which those that move move at each call.
 * What a card would lack (links, fabric, memory temperature of old boards) is answered with "not supported".
 *
 *   STUB_CARDS   number of cards (default 8)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct card *handle;

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3 };

struct card { u32 index; };
struct pair { u32 gpu, memory; };
struct memory { u64 total, free, used; };
struct memory_v2 { u32 version; u64 total, reserved, free, used; };
struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char address[32]; };
struct histogram { u32 max, high, partial, low, none; };
struct field { u32 id, scope; long long at, took; u32 kind, code; union { double d; u32 u; unsigned long l; u64 ll; } value; };

static struct card cards[64];

static u32 count(void)
{
    const char *text = getenv("STUB_CARDS");
    return text ? (u32)atoi(text) : 8;
}

static u32 moving(handle card, u32 low, u32 span)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return low + (u32)((now.tv_nsec / 1000 + card->index * 977) % span);
}

#define TEXT(name, ...) int name(handle card, char *text, u32 size) { (void)card; snprintf(text, size, __VA_ARGS__); return OK; }
#define NUMBER(name, expression) int name(handle card, u32 *value) { (void)card; *value = (expression); return OK; }
#define LACKS(name) int name(void) { return NOT_SUPPORTED; }

int nvmlInitWithFlags(u32 flags) { (void)flags; return OK; }
int nvmlInit_v2(void) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == NOT_SUPPORTED ? "Not Supported" : "Invalid Argument"; }
int nvmlSystemGetDriverVersion(char *text, u32 size) { snprintf(text, size, "565.57.01"); return OK; }
int nvmlSystemGetNVMLVersion(char *text, u32 size) { snprintf(text, size, "12.565.57.01"); return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12070; return OK; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 12070; return OK; }
int nvmlSystemGetProcessName(u32 pid, char *text, u32 size) { snprintf(text, size, "job-%u", pid); return OK; }
int nvmlDeviceGetCount_v2(u32 *value) { *value = count(); return OK; }

int nvmlDeviceGetHandleByIndex_v2(u32 index, handle *card)
{
    if (index >= count() || index >= 64)
        return INVALID;
    cards[index].index = index;
    *card = &cards[index];
    return OK;
}

TEXT(nvmlDeviceGetName, "Stand-in 80GB")
TEXT(nvmlDeviceGetUUID, "GPU-5ac0ffee-1111-4222-8333-4444%08x", card->index)
TEXT(nvmlDeviceGetSerial, "16528211%05u", card->index + 4711)
TEXT(nvmlDeviceGetBoardPartNumber, "900-2G133-0000-000")
TEXT(nvmlDeviceGetVbiosVersion, "96.00.74.00.1C")
TEXT(nvmlDeviceGetGspFirmwareVersion, "565.57.01")
TEXT(nvmlDeviceGetInforomImageVersion, "G520.0200.00.05")
NUMBER(nvmlDeviceGetIndex, card->index)
NUMBER(nvmlDeviceGetMinorNumber, card->index)
NUMBER(nvmlDeviceGetBoardId, 0x100u + card->index)
NUMBER(nvmlDeviceGetBrand, 14)
NUMBER(nvmlDeviceGetArchitecture, 9)
NUMBER(nvmlDeviceGetPowerUsage, moving(card, 180000, 90000))
NUMBER(nvmlDeviceGetEnforcedPowerLimit, 400000)
NUMBER(nvmlDeviceGetPowerManagementLimit, 400000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, 400000)
NUMBER(nvmlDeviceGetPerformanceState, 0)
NUMBER(nvmlDeviceGetPowerState, 0)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, 0)
NUMBER(nvmlDeviceGetComputeMode, 0)
NUMBER(nvmlDeviceGetPersistenceMode, 1)
NUMBER(nvmlDeviceGetDisplayActive, 0)
NUMBER(nvmlDeviceGetDisplayMode, 0)
LACKS(nvmlDeviceGetFanSpeed)
LACKS(nvmlDeviceGetMarginTemperature)
LACKS(nvmlDeviceGetGpuFabricInfoV)
LACKS(nvmlDeviceGetNvLinkState)
LACKS(nvmlDeviceGetNvLinkVersion)
LACKS(nvmlDeviceGetNvLinkRemoteDeviceType)
LACKS(nvmlDeviceGetNvLinkCapability)
LACKS(nvmlDeviceGetVirtualizationMode)
LACKS(nvmlDeviceGetJpgUtilization)
LACKS(nvmlDeviceGetOfaUtilization)
LACKS(nvmlDeviceGetRetiredPages_v2)

int nvmlDeviceGetMemoryAffinity(handle card, u32 size, unsigned long *nodes, u32 scope)
{
    (void)scope;
    memset(nodes, 0, size * sizeof *nodes);
    nodes[0] = card->index < 4 ? 1 : 2;
    return OK;
}

static int pci(handle card, struct pci *into)
{
    memset(into, 0, sizeof *into);
    into->bus = 0x1a + card->index;
    into->id = 0x233010de;
    into->subsystem = 0x16c110de;
    snprintf(into->legacy, sizeof into->legacy, "0000:%02X:00.0", into->bus);
    snprintf(into->address, sizeof into->address, "00000000:%02X:00.0", into->bus);
    return OK;
}

int nvmlDeviceGetPciInfo_v3(handle card, struct pci *into) { return pci(card, into); }
int nvmlDeviceGetPciInfo_v2(handle card, struct pci *into) { return pci(card, into); }
int nvmlDeviceGetCudaComputeCapability(handle card, int *major, int *minor) { (void)card; *major = 9; *minor = 0; return OK; }

int nvmlDeviceGetUtilizationRates(handle card, struct pair *into)
{
    into->gpu = moving(card, 0, 101);
    into->memory = moving(card, 0, 61);
    return OK;
}

int nvmlDeviceGetEncoderUtilization(handle card, u32 *value, u32 *period) { (void)card; *value = 0; *period = 167000; return OK; }
int nvmlDeviceGetDecoderUtilization(handle card, u32 *value, u32 *period) { (void)card; *value = 0; *period = 167000; return OK; }
int nvmlDeviceGetTemperature(handle card, u32 sensor, u32 *value) { (void)sensor; *value = moving(card, 40, 30); return OK; }
int nvmlDeviceGetTemperatureThreshold(handle card, u32 which, u32 *value) { (void)card; *value = which == 0 ? 95 : 90; return which < 2 ? OK : NOT_SUPPORTED; }
int nvmlDeviceGetPowerManagementLimitConstraints(handle card, u32 *low, u32 *high) { (void)card; *low = 200000; *high = 700000; return OK; }
int nvmlDeviceGetClockInfo(handle card, u32 kind, u32 *value) { *value = moving(card, 1200 + kind * 100, 700); return OK; }
int nvmlDeviceGetMaxClockInfo(handle card, u32 kind, u32 *value) { (void)card; *value = 1980 + kind * 100; return OK; }
int nvmlDeviceGetClock(handle card, u32 kind, u32 id, u32 *value) { (void)id; *value = moving(card, 1200 + kind * 100, 700); return OK; }
int nvmlDeviceGetCurrentClocksEventReasons(handle card, u64 *value) { (void)card; *value = 0; return OK; }
int nvmlDeviceGetCurrentClocksThrottleReasons(handle card, u64 *value) { (void)card; *value = 0; return OK; }
int nvmlDeviceGetEccMode(handle card, u32 *now, u32 *next) { (void)card; *now = *next = 1; return OK; }
int nvmlDeviceGetMigMode(handle card, u32 *now, u32 *next) { (void)card; *now = *next = 0; return OK; }
int nvmlDeviceGetMaxMigDeviceCount(handle card, u32 *value) { (void)card; *value = 0; return OK; }
int nvmlDeviceIsMigDeviceHandle(handle card, u32 *value) { (void)card; *value = 0; return OK; }

int nvmlDeviceGetMemoryErrorCounter(handle card, u32 kind, u32 span, u32 place, u64 *value)
{
    (void)card; (void)kind; (void)span;
    *value = 0;
    return place == 2 || place == 7 ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetTotalEccErrors(handle card, u32 kind, u32 span, u64 *value) { (void)card; (void)kind; (void)span; *value = 0; return OK; }
int nvmlDeviceGetTotalEnergyConsumption(handle card, u64 *value) { *value = 123456789ull + moving(card, 0, 1000000); return OK; }

int nvmlDeviceGetRemappedRows(handle card, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed)
{
    (void)card;
    *corrected = *uncorrected = *pending = *failed = 0;
    return OK;
}

int nvmlDeviceGetRowRemapperHistogram(handle card, struct histogram *into)
{
    (void)card;
    memset(into, 0, sizeof *into);
    into->max = 640;
    return OK;
}

int nvmlDeviceGetMemoryInfo(handle card, struct memory *into)
{
    into->total = 85520809984ull;
    into->used = (u64)moving(card, 1000, 60000) << 20;
    into->free = into->total - into->used;
    return OK;
}

int nvmlDeviceGetMemoryInfo_v2(handle card, struct memory_v2 *into)
{
    into->total = 85520809984ull;
    into->reserved = 600ull << 20;
    into->used = (u64)moving(card, 1000, 60000) << 20;
    into->free = into->total - into->reserved - into->used;
    return OK;
}

int nvmlDeviceGetBAR1MemoryInfo(handle card, struct memory *into)
{
    (void)card;
    into->total = 137438953472ull;
    into->used = 1ull << 20;
    into->free = into->total - into->used;
    return OK;
}

int nvmlDeviceGetPcieThroughput(handle card, u32 which, u32 *value) { (void)which; *value = moving(card, 0, 100000); return OK; }

static int none(handle card, u32 *number, void *rows) { (void)card; (void)rows; *number = 0; return OK; }
int nvmlDeviceGetComputeRunningProcesses_v3(handle card, u32 *number, void *rows) { return none(card, number, rows); }
int nvmlDeviceGetComputeRunningProcesses_v2(handle card, u32 *number, void *rows) { return none(card, number, rows); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(handle card, u32 *number, void *rows) { return none(card, number, rows); }
int nvmlDeviceGetGraphicsRunningProcesses_v2(handle card, u32 *number, void *rows) { return none(card, number, rows); }

int nvmlDeviceGetFieldValues(handle card, int number, struct field *fields)
{
    for (int at = 0; at < number; at++) {
        struct field *one = &fields[at];
        one->code = OK;
        one->kind = 1;
        one->at = one->took = 0;
        if (one->id == 82)
            one->value.u = moving(card, 50, 30);
        else if (one->id == 83)
            one->kind = 3, one->value.ll = 123456789ull + moving(card, 0, 1000000);
        else if ((one->id == 185 || one->id == 186) && one->scope == 0)
            one->value.u = moving(card, 180000, 90000);
        else if (one->id == 230)
            one->value.u = 0;
        else
            one->code = NOT_SUPPORTED;
    }
    return OK;
}
