/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_device.c - the descriptions of the emulated devices. */
#include "fabric/cxiemu_info.h"
#include "fabric/cxiemu_param.h"

#include <rdma/fi_errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CXIEMU_DEVICE_SPEED 200000000000ull /* Slingshot's */
#define CXIEMU_DEVICE_MTU   2048

/* Name of a device, with the final zero */
#define CXIEMU_DEVICE_NAME_MAX 16

/** Device and its parts in one piece; other texts are constants. */
typedef struct cxiemu_device {
    struct fid_nic        nic; /* First: handed out */
    unsigned              number;
    char                  name[CXIEMU_DEVICE_NAME_MAX];
    struct fi_device_attr device;
    struct fi_bus_attr    bus;
    struct fi_link_attr   link;
} cxiemu_device_t;


static int cxiemu_device_close(struct fid *fid)
{
    free(container_of(fid, cxiemu_device_t, nic.fid));
    return 0;
}

/* fi_dupinfo() copies the device by this. */
static int cxiemu_device_control(struct fid *fid, int command, void *arg)
{
    struct fid_nic *nic;

    if (command != FI_DUP) {
        return -FI_ENOSYS;
    }
    /* Also if it is NULL: the copy still has the original there, and libfabric
     * 1.17 would free that with it */
    nic = cxiemu_device_new(
            container_of(fid, cxiemu_device_t, nic.fid)->number);
    *(struct fid_nic**)arg = nic;
    return (nic == NULL) ? -FI_ENOMEM : 0;
}

static struct fi_ops cxiemu_device_ops = {
    .size     = sizeof(struct fi_ops),
    .close    = cxiemu_device_close,
    .bind     = cxiemu_no_bind,
    .control  = cxiemu_device_control,
    .ops_open = cxiemu_no_ops_open
};

int cxiemu_device_is_named(unsigned number, const char *name)
{
    char own[CXIEMU_DEVICE_NAME_MAX];

    snprintf(own, sizeof(own), CXIEMU_DEVICE_NAME "%u", number);
    return (name == NULL) || !strcmp(name, own);
}

int cxiemu_device_exists(const char *name)
{
    unsigned number;

    for (number = 0; number < cxiemu_param()->devices; ++number) {
        if (cxiemu_device_is_named(number, name)) {
            return 1;
        }
    }
    return 0;
}

struct fid_nic *cxiemu_device_new(unsigned number)
{
    cxiemu_device_t *device;

    device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return NULL;
    }
    device->number          = number;
    snprintf(device->name, sizeof(device->name), CXIEMU_DEVICE_NAME "%u",
             number);
    device->nic.fid.fclass  = FI_CLASS_NIC;
    device->nic.fid.ops     = &cxiemu_device_ops;
    device->nic.device_attr = &device->device;
    device->nic.bus_attr    = &device->bus;
    device->nic.link_attr   = &device->link;

    device->device.name           = device->name;
    device->device.device_id      = (char*)"0x0";
    device->device.device_version = (char*)"0";
    device->device.vendor_id      = (char*)"0x0";
    device->device.driver         = (char*)"cxiemu";
    device->device.firmware       = (char*)"none";
    device->bus.bus_type          = FI_BUS_UNKNOWN;
    device->link.address          = device->name;
    device->link.mtu              = CXIEMU_DEVICE_MTU;
    device->link.speed            = CXIEMU_DEVICE_SPEED;
    device->link.state            = FI_LINK_UP;
    device->link.network_type     = (char*)"shared memory";
    return &device->nic;
}
