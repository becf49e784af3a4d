/* The names in linux/fs.h and linux/userfaultfd.h are newer than many systems' headers. So they are
 * defined here. */
#include "track/marks.h"
#include <errno.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#define FEATURE_WP_UNPOPULATED (UINT64_C(1) << 13)
#define FEATURE_WP_ASYNC       (UINT64_C(1) << 15)

struct request {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define PAGEMAP_SCAN_CALL _IOWR('f', 16, struct request)

int vv_marks_find(int pagemap, const struct vv_marks_query *q, uint64_t *lo, uint64_t hi, struct vv_marks_found *found, size_t *n)
{
	struct request r = {.size = sizeof(r), .flags = q->flags, .start = *lo, .end = hi, .vec = (uintptr_t)found, .vec_len = VV_MARKS_AT_ONCE,
			    .max_pages = q->max_pages, .category_mask = q->all | q->none, .category_inverted = q->none,
			    .category_anyof_mask = q->any, .return_mask = VV_MARKS_WRITTEN};
	int got;

	do
		got = ioctl(pagemap, PAGEMAP_SCAN_CALL, &r);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno;
	*n = (size_t)got;
	*lo = hi;
	/* Linux 6.18 leaves a stale walk_end if it found more than 512 ranges. So walk_end is only
	 * a lower bound. */
	if (*n == VV_MARKS_AT_ONCE)
		*lo = r.walk_end > found[*n - 1].hi ? r.walk_end : found[*n - 1].hi;
	return 0;
}

int vv_marks_begin(int uffd)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | FEATURE_WP_UNPOPULATED | FEATURE_WP_ASYNC};

	return ioctl(uffd, UFFDIO_API, &api) == 0 ? 0 : errno;
}

int vv_marks_watch(int uffd, uint64_t lo, uint64_t hi)
{
	struct uffdio_register r = {.range = {lo, hi - lo}, .mode = UFFDIO_REGISTER_MODE_WP};

	return ioctl(uffd, UFFDIO_REGISTER, &r) == 0 ? 0 : errno;
}

/* All pages match and no categories are requested, so the result is one range. With no room for a
 * result the kernel would be even faster, but some kernels then fail where a huge page is split. */
int vv_marks_set(int pagemap, uint64_t lo, uint64_t hi)
{
	while (lo < hi) {
		struct vv_marks_found all;
		struct request r = {.size = sizeof(r), .flags = VV_MARKS_SET | VV_MARKS_CHECK, .start = lo, .end = hi, .vec = (uintptr_t)&all, .vec_len = 1};
		int got = ioctl(pagemap, PAGEMAP_SCAN_CALL, &r);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		/* Beyond this, memory is unmapped or the range ends. */
		lo = got == 0 ? hi : all.hi;
	}
	return 0;
}

int vv_marks_clear(int uffd, uint64_t lo, uint64_t hi)
{
	struct uffdio_writeprotect w = {.range = {lo, hi - lo}};
	int rc;

	do
		rc = ioctl(uffd, UFFDIO_WRITEPROTECT, &w);
	while (rc != 0 && errno == EAGAIN);
	return rc == 0 ? 0 : errno;
}
