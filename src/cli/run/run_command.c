#include "cli/run/run_command.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* 0, ENOENT, or EACCES: the file exists, but cannot be executed. */
static int look_at(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return ENOENT;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : EACCES;
}

/* Searches as execvp does. */
static int find(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");
	int err = ENOENT, found;

	if (!*name)
		return ENOENT;
	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? look_at(path) : ENOENT;
	for (const char *at = folders ? folders : "/bin:/usr/bin"; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		int n = (int)strcspn(at, ":");

		if (snprintf(path, PATH_MAX, "%.*s%s%s", n, at, n ? "/" : "", name) >= PATH_MAX)
			continue;
		found = look_at(path);
		if (found == 0)
			return 0;
		err = found == EACCES ? EACCES : err;
	}
	return err;
}

/* The file has a name for dynamic linking: it is a library, such as the loader. The loader takes
 * the program to load on its command line. */
static bool is_library(int fd, const ElfW(Phdr) *dynamic)
{
	enum { MOST = 1000 }; /* entries: none has so many */
	ElfW(Dyn) d = { .d_tag = DT_NULL };

	for (size_t at = 0; at < MOST * sizeof(d) && at + sizeof(d) <= dynamic->p_filesz; at += sizeof(d))
		if (pread(fd, &d, sizeof(d), (off_t)(dynamic->p_offset + at)) != sizeof(d) || d.d_tag == DT_NULL || d.d_tag == DT_SONAME)
			break;
	return d.d_tag == DT_SONAME;
}

/* A program that names no loader is static. */
static bool is_static(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool elf = false, loaded = false;
	ElfW(Ehdr) head;
	ElfW(Phdr) part;

	if (fd < 0)
		return false;
	if (pread(fd, &head, sizeof(head), 0) == sizeof(head) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_phentsize == sizeof(part))
		elf = head.e_type == ET_EXEC || head.e_type == ET_DYN;
	for (unsigned i = 0; elf && !loaded && i < head.e_phnum; i++) {
		elf = pread(fd, &part, sizeof(part), (off_t)(head.e_phoff + i * sizeof(part))) == sizeof(part);
		loaded = elf && (part.p_type == PT_INTERP || (part.p_type == PT_DYNAMIC && is_library(fd, &part)));
	}
	close(fd);
	return elf && !loaded;
}

static bool has_rights(const char *path)
{
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) != 0 || statvfs(path, &fs) != 0 || fs.f_flag & ST_NOSUID)
		return false;
	if ((st.st_mode & S_ISUID && st.st_uid != getuid()) || (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getgid()))
		return true;
	return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

int vv_run_command_check(const char *name)
{
	char path[PATH_MAX];

	return find(name, path);
}

enum vv_run_command_kind vv_run_command_kind_of(const char *name)
{
	char path[PATH_MAX];

	if (find(name, path))
		return VV_RUN_COMMAND_OPEN;
	return is_static(path) ? VV_RUN_COMMAND_STATIC : has_rights(path) ? VV_RUN_COMMAND_RIGHTS : VV_RUN_COMMAND_OPEN;
}
