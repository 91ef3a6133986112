/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook_cxitrig.c - a component of OpenMPI's "hook" framework that loads the
 * transport into every MPI program.
 *
 * OpenMPI opens its hooks before it initialises UCX. This one has nothing to
 * call: it needs the transport's library, which registers itself when it is
 * loaded.
 */
#include <uct_trig.h>

#include <ompi_config.h>
#include <ompi/mca/hook/hook.h>


/* Without a use of the transport the linker may leave it out */
static void (*const mca_hook_cxitrig_needs)(char *text, size_t max)
        __attribute__((used)) = uct_trig_off_reason;

/* Found by this name, which follows from the file's */
extern const ompi_hook_base_component_t mca_hook_cxitrig_component;

const ompi_hook_base_component_t mca_hook_cxitrig_component = {
    .hookm_version = {
        OMPI_HOOK_BASE_VERSION_1_0_0,
        .mca_component_name          = "cxitrig",
        .mca_component_major_version = OMPI_MAJOR_VERSION,
        .mca_component_minor_version = OMPI_MINOR_VERSION
    },
    .hookm_data    = {MCA_BASE_METADATA_PARAM_CHECKPOINT}
};
