#include "image/restore/socket_files.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "reader/criu_entries.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fields of criu's file_entry and unix_sk_entry. */
enum { UNIX_SOCKET = 16, NAME = 11, FOLDER = 14 };

struct vv_socket_files_file {
	char *path, *kept;
};

static int length_of(struct vv_proto text)
{
	return (int)strnlen((const char *)text.p, text.n < PATH_MAX ? text.n : PATH_MAX);
}

/* An abstract name begins with a NUL and is not a file. */
static int path_of(struct vv_proto socket, char **out)
{
	struct vv_proto name = vv_proto_body(socket, NAME), folder = vv_proto_body(socket, FOLDER);
	bool whole = name.n && name.p[0] == '/';

	*out = NULL;
	if (!name.n || !name.p[0] || (!whole && !folder.n))
		return 0;
	*out = whole ? vv_mem_printf("%.*s", length_of(name), (const char *)name.p)
		     : vv_mem_printf("%.*s/%.*s", length_of(folder), (const char *)folder.p, length_of(name), (const char *)name.p);
	return *out ? 0 : VV_ENOMEM;
}

static int keep(struct vv_socket_files *k, char *path)
{
	struct vv_socket_files_file f = { path, vv_mem_printf("%s.varve-%d-%zu", path, (int)getpid(), k->n) };
	int rc = f.kept ? vv_mem_room(&k->file, k->n, &k->cap, sizeof(*k->file)) : VV_ENOMEM;

	if (rc == 0 && link(path, f.kept) == 0) {
		k->file[k->n++] = f;
		return 0;
	}
	if (rc == 0)
		vv_log_warn("socket '%s' cannot be kept (%s): it is lost if the restore fails", path, strerror(errno));
	vv_mem_free(f.path);
	vv_mem_free(f.kept);
	return rc;
}

static int keep_all(struct vv_socket_files *k, struct vv_proto files)
{
	struct vv_proto entry;
	int rc = 0;

	while (rc == 0 && vv_criu_entries_next(&files, &entry)) {
		struct stat st;
		char *path;

		rc = path_of(vv_proto_body(entry, UNIX_SOCKET), &path);
		if (rc == 0 && path && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
			rc = keep(k, path);
		else
			vv_mem_free(path);
	}
	return rc;
}

int vv_socket_files_keep(struct vv_socket_files *k, struct vv_serve_images *s)
{
	size_t n = 0, file = vv_serve_images_find(s, "files.img");
	uint8_t *image = NULL;
	int rc = file < s->files.n_files ? vv_serve_images_read(s, file, &image, &n) : 0;

	if (rc == 0)
		rc = keep_all(k, vv_criu_entries_open(image, n, VV_CRIU_FILES));
	vv_mem_free(image);
	return rc;
}

void vv_socket_files_close(struct vv_socket_files *k, bool put_back)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct vv_socket_files_file *f = &k->file[i];

		if (put_back && rename(f->kept, f->path) < 0)
			vv_log_warn("socket '%s' is lost: '%s' cannot be renamed (%s)", f->path, f->kept, strerror(errno));
		unlink(f->kept); /* rename leaves it if both names led to one file */
		vv_mem_free(f->path);
		vv_mem_free(f->kept);
	}
	vv_mem_free(k->file);
	*k = (struct vv_socket_files){ 0 };
}
