/* Two ways to stop a write. The first, mprotect, splits mappings, of which a process may have about
 * 65 thousand. The kernel does not know our purpose. The second, userfaultfd, marks single pages.
 * With both, a system call that writes to the pages fails with EFAULT. */
#include "track/page_protection.h"
#include "base/err.h"
#include "base/own_fds.h"
#include "base/log.h"
#include "track/memory.h"
#include "track/registered_memory.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than some kernel headers. */
#define FEATURE_WP_UNPOPULATED (UINT64_C(1) << 13)
#define ADVICE_POPULATE_READ   22
#define FLAG_USER_MODE_ONLY    1

#define PAGEMAP_UFFD_WP (UINT64_C(1) << 57)

struct vv_page_protection_ops {
	int sig, code;
	bool shared; /* with a child of fork */
	int (*open)(struct vv_page_protection *g);
	int (*add)(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
	bool (*remove)(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
	/* Both protect and unprotect return 0 or -1, like system calls. */
	int (*protect)(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
	int (*unprotect)(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi);
	bool (*are_intact)(struct vv_page_protection *g, struct vv_memory_range *r, size_t n);
	void (*may_protect)(struct vv_memory_range *r, size_t n);
};

static void *pointer(uintptr_t address)
{
	return (void *)address; /* NOLINT: the conversion is intended */
}

/* ---- mprotect */

static int open_nothing(struct vv_page_protection *g)
{
	g->fd = -1;
	return 0;
}

static int accept_pages(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	(void)g;
	if (!vv_memory_watchable(lo, hi))
		return vv_err_set(VV_ENOTSUP, "write protection needs private anonymous memory, all of it readable and writable");
	vv_memory_keep_mergeable(lo);
	return 0;
}

static bool remove_nothing(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	(void)g, (void)lo, (void)hi;
	return false;
}

static int protect(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	(void)g;
	return vv_memory_set_rights(lo, hi, PROT_READ);
}

static int unprotect(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	(void)g;
	return vv_memory_set_rights(lo, hi, PROT_READ | PROT_WRITE);
}

static bool are_protected(struct vv_page_protection *g, struct vv_memory_range *r, size_t n)
{
	(void)g;
	return vv_memory_are_readonly(r, n);
}

/* Unprotected pages have the program's own rights. If a page is not writable, removing our
 * protection would override the program's choice. */
static void may_protect(struct vv_memory_range *r, size_t n)
{
	vv_memory_look(r, n, vv_memory_is_watchable);
}

static const struct vv_page_protection_ops by_mprotect = {
	.sig = SIGSEGV,
	.code = SEGV_ACCERR,
	.open = open_nothing,
	.add = accept_pages,
	.remove = remove_nothing,
	.protect = protect,
	.unprotect = unprotect,
	.are_intact = are_protected,
	.may_protect = may_protect,
};

/* ---- userfaultfd */

/* Every user may open a userfaultfd for user mode only. Faults in the kernel would end in EFAULT
 * anyway. Kernels before 5.11 do not have the flag. */
static int open_userfault(struct vv_page_protection *g)
{
	uint64_t wanted = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
	struct uffdio_api api = {.api = UFFD_API, .features = wanted | FEATURE_WP_UNPOPULATED};

	vv_own_fds_make();
	g->fd = vv_own_fds_made((int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | FLAG_USER_MODE_ONLY));
	if (g->fd < 0 && errno == EINVAL) {
		vv_own_fds_make();
		g->fd = vv_own_fds_made((int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
	}
	if (g->fd < 0)
		return vv_err_set(VV_ENOTSUP, "userfaultfd: %s%s", strerror(errno),
				  errno == EPERM ? " (see vm.unprivileged_userfaultfd, or a seccomp filter)" : "");
	g->stamp = vv_fd_identity_of(g->fd);
	if (ioctl(g->fd, UFFDIO_API, &api) == 0)
		return 0;
	api = (struct uffdio_api){.api = UFFD_API, .features = wanted};
	g->populate = true;
	if (ioctl(g->fd, UFFDIO_API, &api) == 0)
		return 0;
	vv_own_fds_close(g->fd);
	return vv_err_set(VV_ENOTSUP, "the kernel has no userfaultfd write protection with SIGBUS");
}

static int register_pages(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	int rc = accept_pages(g, lo, hi);
	uint64_t ioctls;

	if (rc)
		return rc;
	rc = vv_registered_memory_add(g->fd, lo, hi, &ioctls);
	if (rc)
		return vv_err_set(VV_ENOTSUP, "userfaultfd does not take this memory: %s", strerror(rc));
	if (!(ioctls & UINT64_C(1) << _UFFDIO_WRITEPROTECT)) {
		vv_registered_memory_remove(g->fd, lo, hi);
		return vv_err_set(VV_ENOTSUP, "userfaultfd cannot write-protect this memory");
	}
	return 0;
}

/* The kernel removes the protection of pages that it unregisters. */
static bool unregister(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	return vv_registered_memory_remove(g->fd, lo, hi);
}

static int set_mode(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi, uint64_t mode)
{
	struct uffdio_writeprotect w = {.range = {lo, hi - lo}, .mode = mode};
	int rc;

	do
		rc = ioctl(g->fd, UFFDIO_WRITEPROTECT, &w);
	while (rc != 0 && errno == EAGAIN);
	return rc;
}

static int populate(uintptr_t lo, uintptr_t hi)
{
	if (madvise(pointer(lo), hi - lo, ADVICE_POPULATE_READ) == 0)
		return 0;
	/* With MS_ASYNC, msync finds holes and does nothing else. */
	if (errno != EINVAL || msync(pointer(lo), hi - lo, MS_ASYNC) != 0)
		return -1;
	for (uintptr_t at = lo; at < hi; at += vv_memory_page()) /* Linux < 5.14 */
		(void)*(volatile const char *)pointer(at);
	return 0;
}

static int arm(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	if (g->populate && populate(lo, hi) != 0)
		return -1;
	return set_mode(g, lo, hi, UFFDIO_WRITEPROTECT_MODE_WP);
}

static int disarm(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	return set_mode(g, lo, hi, 0);
}

static bool is_armed(int pagemap, size_t at, size_t end)
{
	uint64_t entry[512];

	while (at < end) {
		size_t n = end - at < 512 ? end - at : 512;

		if (pread(pagemap, entry, n * sizeof(entry[0]), (off_t)(at * sizeof(entry[0]))) != (ssize_t)(n * sizeof(entry[0])))
			return false;
		for (size_t i = 0; i < n; i++)
			if (!(entry[i] & PAGEMAP_UFFD_WP))
				return false;
		at += n;
	}
	return true;
}

/* Memory that was unmapped, remapped or dropped by madvise has no mark. */
static bool are_armed(struct vv_page_protection *g, struct vv_memory_range *r, size_t n)
{
	int fd = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0;

	if (!vv_fd_identity_fits(&g->stamp, g->fd))
		vv_log_warn("the program has closed a descriptor that is varve's, and with it the write protection of its memory");
	for (size_t i = 0; ok && i < n; i++)
		ok = is_armed(fd, r[i].lo / vv_memory_page(), r[i].hi / vv_memory_page());
	if (fd >= 0)
		close(fd);
	return ok;
}

/* The mark exists beside the page's rights and does not replace them. */
static void may_arm(struct vv_memory_range *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		r[i].ok = true;
}

static const struct vv_page_protection_ops by_userfault = {
	.sig = SIGBUS,
	.code = BUS_ADRERR,
	.shared = true,
	.open = open_userfault,
	.add = register_pages,
	.remove = unregister,
	.protect = arm,
	.unprotect = disarm,
	.are_intact = are_armed,
	.may_protect = may_arm,
};

/* ---- both */

int vv_page_protection_open(struct vv_page_protection *g, bool userfault)
{
	*g = (struct vv_page_protection){.ops = userfault ? &by_userfault : &by_mprotect};
	return g->ops->open(g);
}

int vv_page_protection_check(const struct vv_page_protection *g)
{
	return g->ops == &by_userfault ? vv_fd_identity_check(&g->stamp, g->fd, "fence memory") : 0;
}

void vv_page_protection_close(struct vv_page_protection *g)
{
	vv_registered_memory_forget(g->fd);
	vv_fd_identity_close(&g->stamp, g->fd);
}

int vv_page_protection_add(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	return g->ops->add(g, lo, hi);
}

bool vv_page_protection_remove(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	return g->ops->remove(g, lo, hi);
}

int vv_page_protection_set(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	if (g->ops->protect(g, lo, hi) == 0)
		return 0;
	if (errno == ENOENT)
		return vv_err_set(VV_EINVAL, "cannot write-protect memory that is gone or was mapped again");
	return vv_err_sys(errno, "cannot write-protect memory");
}

int vv_page_protection_clear(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	if (g->ops->unprotect(g, lo, hi) == 0)
		return 0;
	if (errno != ENOENT)
		return errno == ENOMEM ? VV_ENOMEM : VV_EINVAL;
	vv_page_protection_clear_mapped(g, lo, hi); /* unregistered memory is unprotected */
	return 0;
}

/* The kernel stops at the first hole. So the range is halved until the holes are isolated. */
void vv_page_protection_clear_mapped(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	uintptr_t mid = lo + (hi - lo) / 2 / vv_memory_page() * vv_memory_page();

	if (g->ops->unprotect(g, lo, hi) == 0 || mid == lo)
		return;
	vv_page_protection_clear_mapped(g, lo, mid);
	vv_page_protection_clear_mapped(g, mid, hi);
}

bool vv_page_protection_are_intact(struct vv_page_protection *g, struct vv_memory_range *r, size_t n)
{
	return g->ops->are_intact(g, r, n);
}

bool vv_page_protection_is_intact(struct vv_page_protection *g, uintptr_t lo, uintptr_t hi)
{
	return g->ops->are_intact(g, &(struct vv_memory_range){lo, hi, false}, 1);
}

void vv_page_protection_may_set(const struct vv_page_protection *g, struct vv_memory_range *r, size_t n)
{
	g->ops->may_protect(r, n);
}

bool vv_page_protection_is_fault(const struct vv_page_protection *g, int sig, int code)
{
	return sig == g->ops->sig && code == g->ops->code;
}

/* Unprotects all of the range at once, since fork copied its protection. A userfaultfd registration
 * is not inherited, so such a fault is not ours. */
bool vv_page_protection_fault_in_child(const struct vv_page_protection *g, uintptr_t lo, uintptr_t hi, uintptr_t page)
{
	if (g->ops->shared)
		return false;
	return vv_memory_set_rights(lo, hi, PROT_READ | PROT_WRITE) == 0 || vv_memory_set_rights(page, page + vv_memory_page(), PROT_READ | PROT_WRITE) == 0;
}

bool vv_page_protection_is_shared(const struct vv_page_protection *g)
{
	return g->ops->shared;
}
