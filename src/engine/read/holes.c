#include "engine/read/holes.h"
#include <errno.h>
#include <unistd.h>

uint64_t vv_holes_zeros_end(const struct vv_runs *runs, uint64_t at)
{
	size_t i = vv_run_find(runs, at);

	return i < runs->n && runs->v[i].layer == 0 && runs->v[i].at <= at && runs->v[i].len >= VV_HOLES_HOLE ?
		       runs->v[i].at + runs->v[i].len :
		       at;
}

static int write_all(int fd, const uint8_t *p, uint64_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t put = pwrite(fd, p, (size_t)n, (off_t)at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -1;
		p += put;
		at += (uint64_t)put;
		n -= (uint64_t)put;
	}
	return 0;
}

int vv_holes_write(int fd, uint64_t base, const struct vv_runs *runs, uint64_t at, const uint8_t *p, uint64_t n)
{
	uint64_t end = at + n, start = at;

	while (at < end) {
		uint64_t from = vv_holes_zeros_end(runs, at);

		at = from < end ? from : end;
		from = at;
		for (size_t i = vv_run_find(runs, at); at < end && vv_holes_zeros_end(runs, at) == at; i++)
			at = runs->v[i].at + runs->v[i].len;
		at = at < end ? at : end;
		if (at > from && write_all(fd, p + (from - start), at - from, base + from) < 0)
			return -1;
	}
	return 0;
}
