/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_load.c - loads a shared object and calls its plugin_main(). Two
 * arguments: local or global, and the shared object.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>


int main(int argc, char **argv)
{
    int (*plugin_main)(void);
    void *object;

    if (argc != 3) {
        fprintf(stderr, "usage: %s local|global OBJECT\n", argv[0]);
        return 2;
    }

    object = dlopen(argv[2], RTLD_NOW | (!strcmp(argv[1], "global") ?
                                                 RTLD_GLOBAL :
                                                 RTLD_LOCAL));
    if (object == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }

    plugin_main = (int (*)(void))dlsym(object, "plugin_main");
    if (plugin_main == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return plugin_main();
}
