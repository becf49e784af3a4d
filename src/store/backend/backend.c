#include "store/backend/backend.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/backend/store_options.h"
#include "store/backend/throughput.h"

int vv_backend_init(struct vv_store *s, const struct vv_store_ops *ops, const char *url,
		  const struct vv_store_options *opt)
{
	s->ops = ops;
	s->url = vv_mem_strdup(url);
	if (!s->url)
		return VV_ENOMEM;
	s->bandwidth = opt->bandwidth;
	pthread_mutex_init(&s->pace_lock, NULL);
	return 0;
}

void vv_backend_fini(struct vv_store *s)
{
	while (s->attachments) {
		struct vv_store_attachment *attachment = s->attachments;

		s->attachments = attachment->next;
		attachment->end(attachment);
	}
	if (s->url)
		pthread_mutex_destroy(&s->pace_lock);
	vv_mem_free(s->url);
	s->url = NULL;
}

void vv_backend_write_ended(struct vv_pending_write *w)
{
	vv_throughput_end(w->store, w->bytes);
	w->done(w);
}
