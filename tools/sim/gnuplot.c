/* SPDX-License-Identifier: BSD-2-Clause */
/* Running gnuplot: from the commands of plot.c to a file. */
#include <ctype.h>
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/sim/plot.h"

/*
 * What goes in and comes out, in files without a name: through pipes, gnuplot and we could wait for each other, and a
 * gnuplot that ends early would have to be told from a signal.
 */
struct streams {
    FILE *script, *svg, *complaints;
};

static void streams_close(struct streams *s)
{
    if (s->script)
        fclose(s->script);
    if (s->svg)
        fclose(s->svg);
    if (s->complaints)
        fclose(s->complaints);
}

static int streams_open(struct streams *s, char *error, size_t len)
{
    s->script = tmpfile();
    s->svg = tmpfile();
    s->complaints = tmpfile();
    if (s->script && s->svg && s->complaints)
        return 0;
    int rc = -errno;
    snprintf(error, len, "cannot make a temporary file: %s", strerror(-rc));
    return rc;
}

/* Its exit status, or -errno. */
static int run(const struct streams *s)
{
    /* -d: as gnuplot comes, without what its user likes. */
    char *argv[] = {"gnuplot", "-d", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 0, rc = posix_spawn_file_actions_init(&actions);

    if (rc)
        return -rc;
    posix_spawn_file_actions_adddup2(&actions, fileno(s->script), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(s->svg), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(s->complaints), STDERR_FILENO);
    rc = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc)
        return -rc;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return status;
}

/* "         line 2: all points y value undefined!": what is wrong stands behind the number, else in the first line. */
static void complaint_find(FILE *complaints, char *complaint, size_t len)
{
    char line[256];
    int end;

    snprintf(complaint, len, "it does not say why");
    rewind(complaints);
    for (bool first = true; fgets(line, sizeof(line), complaints);) {
        char *text = line + strspn(line, " \t");
        text[strcspn(text, "\n")] = '\0';
        end = 0;
        (void)sscanf(text, "line %*d: %n", &end);
        if (end > 0 || (first && *text)) {
            snprintf(complaint, len, "%s", text + end);
            first = false;
        }
        if (end > 0)
            return;
    }
}

static int copy(FILE *from, const char *path, char *error, size_t len)
{
    char buffer[4096];
    size_t n;
    int rc = 0;

    FILE *to = fopen(path, "w");
    if (!to) {
        rc = -errno;
        goto out;
    }
    rewind(from);
    while (rc == 0 && (n = fread(buffer, 1, sizeof(buffer), from)) > 0) {
        if (fwrite(buffer, 1, n, to) < n)
            rc = -errno;
    }
    if (fclose(to) && rc == 0)
        rc = -errno;
out:
    if (rc)
        snprintf(error, len, "cannot write %s: %s", path, strerror(-rc));
    return rc;
}

static bool nothing_to_draw(const struct simx_plot *plot)
{
    if (plot->kind == SIMX_PLOT_HEATMAP)
        return plot->matrix.num_rows == 0 || plot->matrix.num_columns == 0;
    for (size_t i = 0; i < plot->num_series; i++) {
        if (plot->series[i].n > 0)
            return false;
    }
    return true;
}

int simx_plot_write(const struct simx_plot *plot, const char *svg_path, char *error, size_t len)
{
    struct streams s = {0};
    char complaint[256];

    if (nothing_to_draw(plot)) {
        snprintf(error, len, "%s: there is nothing to draw", svg_path);
        return -EINVAL;
    }
    int rc = streams_open(&s, error, len);
    if (rc)
        goto out;
    simx_plot_script(plot, s.script);
    if (fflush(s.script)) {
        rc = -errno;
        snprintf(error, len, "cannot write a temporary file: %s", strerror(-rc));
        goto out;
    }
    rewind(s.script);
    rc = run(&s);
    if (rc == -ENOENT) {
        snprintf(error, len, "gnuplot is not installed: apt-get install gnuplot-nox");
    } else if (rc < 0) {
        snprintf(error, len, "cannot run gnuplot: %s", strerror(-rc));
    } else if (rc > 0) {
        complaint_find(s.complaints, complaint, sizeof(complaint));
        snprintf(error, len, "gnuplot cannot draw %s: %s", svg_path, complaint);
        rc = -EPROTO;
    } else {
        rc = copy(s.svg, svg_path, error, len);
    }
out:
    streams_close(&s);
    return rc;
}
