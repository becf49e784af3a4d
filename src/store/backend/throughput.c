#include "store/backend/throughput.h"
#include "base/clock.h"
#include "store/backend/backend.h"

enum {
	ENOUGH = 4 << 20, /* bytes written before the throughput is known */
	MUCH = 1 << 30,   /* bytes at which older ones are halved */
};

void vv_throughput_add(struct vv_store *s, uint64_t bytes, double since)
{
	pthread_mutex_lock(&s->pace_lock);
	s->written_bytes += bytes;
	s->written_seconds += vv_clock_s() - since;
	if (s->written_bytes >= MUCH) {
		s->written_bytes /= 2;
		s->written_seconds /= 2;
	}
	pthread_mutex_unlock(&s->pace_lock);
}

void vv_throughput_begin(struct vv_store *s)
{
	pthread_mutex_lock(&s->pace_lock);
	if (s->n_pending++ == 0)
		s->pending_since = vv_clock_s();
	pthread_mutex_unlock(&s->pace_lock);
}

void vv_throughput_end(struct vv_store *s, size_t bytes)
{
	double since, now = vv_clock_s();

	pthread_mutex_lock(&s->pace_lock);
	since = s->pending_since;
	s->pending_since = now;
	s->n_pending--;
	pthread_mutex_unlock(&s->pace_lock);
	vv_throughput_add(s, bytes, since);
}

void vv_throughput_get(struct vv_store *s, uint64_t *bytes, uint64_t *ns)
{
	pthread_mutex_lock(&s->pace_lock);
	if (s->written_bytes >= ENOUGH && s->written_seconds > 0) {
		*bytes = s->written_bytes;
		*ns = (uint64_t)(s->written_seconds * 1e9) + 1;
	} else {
		*bytes = s->bandwidth;
		*ns = s->bandwidth ? 1000000000 : 0;
	}
	pthread_mutex_unlock(&s->pace_lock);
}

double vv_throughput_rate(struct vv_store *s)
{
	uint64_t bytes, ns;

	vv_throughput_get(s, &bytes, &ns);
	return ns ? (double)bytes / (double)ns * 1e9 : 0;
}
