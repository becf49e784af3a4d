#include "image/process/copy_memory.h"
#include "base/err.h"
#include "base/mem.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	PIECE = 256 << 10,
	AT_ONCE = 64, /* pieces per system call */
};

void vv_copy_memory_fini(struct vv_copy_memory *l)
{
	vv_mem_free(l->v);
	*l = (struct vv_copy_memory){ 0 };
}

int vv_copy_memory_add(struct vv_copy_memory *l, uint64_t addr, uint8_t *to, size_t n)
{
	for (size_t take; n; addr += take, to += take, n -= take) {
		if (vv_mem_room(&l->v, l->n, &l->cap, sizeof(*l->v)) < 0)
			return VV_ENOMEM;
		take = n < PIECE ? n : PIECE;
		l->v[l->n++] = (struct vv_copy_memory_piece){ addr, to, take, false };
	}
	return 0;
}

static bool read_at_once(pid_t pid, const struct vv_copy_memory_piece *p, size_t n)
{
	struct iovec to[AT_ONCE], from[AT_ONCE];
	size_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		to[i] = (struct iovec){ p[i].to, p[i].n };
		from[i] = (struct iovec){ (void *)(uintptr_t)p[i].addr, p[i].n };
		sum += p[i].n;
	}
	return process_vm_readv(pid, to, n, from, n, 0) == (ssize_t)sum;
}

/* Reads /proc/PID/mem, the only way to memory that the process itself may not read. */
static bool read_by_force(pid_t pid, const struct vv_copy_memory_piece *p)
{
	char path[32];
	size_t have = 0;
	ssize_t got = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && have < p->n && got > 0) {
		got = pread(fd, p->to + have, p->n - have, (off_t)(p->addr + have));
		have += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	return have == p->n;
}

static void read_some(void *arg, size_t i)
{
	const struct vv_copy_memory *l = arg;
	struct vv_copy_memory_piece *p = l->v + i * AT_ONCE;
	size_t n = l->n - i * AT_ONCE < AT_ONCE ? l->n - i * AT_ONCE : AT_ONCE;

	if (read_at_once(l->pid, p, n))
		return;
	for (size_t k = 0; k < n; k++)
		p[k].missing = !read_at_once(l->pid, &p[k], 1) && !read_by_force(l->pid, &p[k]);
}

size_t vv_copy_memory_run(struct vv_copy_memory *l, struct vv_pool *pool)
{
	size_t missing = 0;

	vv_pool_each(pool, (l->n + AT_ONCE - 1) / AT_ONCE, read_some, l);
	for (size_t i = 0; i < l->n; i++)
		missing += l->v[i].missing;
	return missing;
}
