/* A file that appears complete under its name or not at all, also when the command is
 * interrupted. */
#ifndef VV_CLI_BASE_OUTFILE_H
#define VV_CLI_BASE_OUTFILE_H

struct vv_outfile {
	int fd;
	char *path; /* its final name, links followed */
	char *tmp;  /* NULL: written in place (a device, a pipe) */
};

int vv_outfile_open(struct vv_outfile *f, const char *path);
/* Commit makes the file durable and gives it its name. Both functions release f, also after a
 * failure. */
int vv_outfile_commit(struct vv_outfile *f);
void vv_outfile_abort(struct vv_outfile *f);

#endif
