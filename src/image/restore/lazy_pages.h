/* Pages that come while the program already runs. `criu restore --lazy-pages` leaves them out, and hands over a userfaultfd for each process: a fault at a
 * page that is not there yet is told by it, and waits. criu has a program of its own for the other end (criu lazy-pages), which reads images from files;
 * here it is this process, and the pages come out of the store: those that are waited for at once, all others one after another. */
#ifndef VV_IMAGE_RESTORE_LAZY_PAGES_H
#define VV_IMAGE_RESTORE_LAZY_PAGES_H

#include "image/restore/serve_images.h"

struct vv_lazy_pages;

/* Looks for pages that may come late; criu, whose command line is added to, gets the others. The images must be there until this is closed. What is in
 * *out is to be closed, also after a failure. held: criu waits at a hook of the caller's, before anything runs, until vv_lazy_pages_bind has been called. VV_ENOTSUP: the
 * kernel cannot. */
int vv_lazy_pages_open(struct vv_serve_images *images, struct vv_criu *c, bool held, struct vv_lazy_pages **out);
/* The same way, but nothing runs before all are there: pages go from where they were decoded straight to where they belong, on all cores, and not
 * through a pipe. Where that is not to be had, *out stays empty. */
int vv_lazy_pages_open_eager(struct vv_serve_images *images, struct vv_criu *c, struct vv_pool *pool, struct vv_lazy_pages **out);
/* From now on, on a thread of its own, whatever is asked for is answered. */
int vv_lazy_pages_start(struct vv_lazy_pages *l);
/* criu has made all processes, and they wait: each gets hold of what its own pages come by. */
int vv_lazy_pages_bind(struct vv_lazy_pages *l);
/* criu has ended: what nobody has asked for comes, too, from now on. */
void vv_lazy_pages_start_rest(struct vv_lazy_pages *l);
/* Of pages that come from afar (image/restore/remote_images.h): there are some new ones; and, are there any that it still needs? */
void vv_lazy_pages_wake(struct vv_lazy_pages *l);
bool vv_lazy_pages_needs(struct vv_lazy_pages *l);
/* They cannot be had: all processes are killed. */
void vv_lazy_pages_give_up(struct vv_lazy_pages *l);
/* The same, until all pages are where they belong, or their processes have ended. If one cannot be had, all processes have been killed. */
int vv_lazy_pages_wait(struct vv_lazy_pages *l);
/* Something could not be had already. */
bool vv_lazy_pages_failed(struct vv_lazy_pages *l);
/* NULL is fine. Without a wait before: criu has failed. */
void vv_lazy_pages_close(struct vv_lazy_pages *l);

#endif
