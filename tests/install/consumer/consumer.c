/* SPDX-License-Identifier: BSD-2-Clause */
/* A user's program: the header and the library agree on the version, and a context opens. */
#include <stdio.h>
#include <string.h>

#include <mrd/mrd.h>
#include <mrd/sim.h>

int main(void)
{
    struct mrd_context *context;
    char header[32], address[MRD_ADDRESS_MAX];

    snprintf(header, sizeof(header), "%d.%d.%d", MRD_VERSION_MAJOR, MRD_VERSION_MINOR,
             MRD_VERSION_PATCH);
    if (strcmp(header, mrd_version()) != 0) {
        fprintf(stderr, "header %s, library %s\n", header, mrd_version());
        return 1;
    }
    context = mrd_open_device(NULL, &(struct mrd_context_attr){.address = "127.0.0.1"});
    if (context == NULL || mrd_query_address(context, address, sizeof(address)) != 0) {
        fprintf(stderr, "%s\n", mrd_last_error());
        return 1;
    }
    printf("%s\n", mrd_version());
    return mrd_close_device(context) == 0 ? 0 : 1;
}
