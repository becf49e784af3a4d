/* Loads pages while the program already runs. `criu restore --lazy-pages` omits these pages and
 * passes a userfaultfd for each process. A fault at a missing page is reported there, and the
 * thread waits. CRIU's own page server (criu lazy-pages) reads images from files. Here this process
 * is the server and reads the pages from the store: first those with a waiting thread, then all
 * others in order. */
#ifndef VV_IMAGE_RESTORE_LAZY_PAGES_H
#define VV_IMAGE_RESTORE_LAZY_PAGES_H

#include "image/restore/serve_images.h"

struct vv_lazy_pages;

/* Finds the pages that may be loaded late; criu gets the others. Extends criu's command line. The
 * images must stay open until this is closed. The caller closes *out, also after a failure. If
 * `held`, criu waits at the caller's hook, before any process runs, until vv_lazy_pages_bind was
 * called. VV_ENOTSUP: the kernel has no such feature. */
int vv_lazy_pages_open(struct vv_serve_images *images, struct vv_criu *c, bool held, struct vv_lazy_pages **out);
/* The same method, but no process runs before all pages are loaded. Decompressed pages are copied
 * straight to their addresses, on all cores, and not through a pipe. If that is not possible, *out
 * is unchanged. */
int vv_lazy_pages_open_eager(struct vv_serve_images *images, struct vv_criu *c, struct vv_pool *pool, struct vv_lazy_pages **out);
/* Starts the thread that answers all faults. */
int vv_lazy_pages_start(struct vv_lazy_pages *l);
/* To be called when criu has created all processes, and they wait: each process then holds its own
 * userfaultfd (image/process/uffd_keeper.h). */
int vv_lazy_pages_bind(struct vv_lazy_pages *l);
/* To be called when criu has ended: pages without a fault are loaded from now on, too. */
void vv_lazy_pages_start_rest(struct vv_lazy_pages *l);
/* For pages from other ranks' stores (image/restore/remote_images.h): reports new pages; and
 * returns whether more pages are needed. */
void vv_lazy_pages_wake(struct vv_lazy_pages *l);
bool vv_lazy_pages_needs(struct vv_lazy_pages *l);
/* Missing pages are not available: all processes are killed. */
void vv_lazy_pages_give_up(struct vv_lazy_pages *l);
/* Like vv_lazy_pages_start_rest, and waits until all pages are loaded or their processes have
 * ended. On failure all processes have been killed. */
int vv_lazy_pages_wait(struct vv_lazy_pages *l);
/* Returns whether loading has failed already. */
bool vv_lazy_pages_failed(struct vv_lazy_pages *l);
/* Accepts NULL. Without a wait before, criu has failed. */
void vv_lazy_pages_close(struct vv_lazy_pages *l);

#endif
