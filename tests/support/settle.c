#include "support/settle.h"
#include "vv_test.h"

int settle_checkpoint(varve *v)
{
	uint64_t before = varve_epoch(v), epoch;
	int rc = varve_checkpoint(v);

	if (rc)
		return rc;
	epoch = varve_epoch(v);
	CHECK(epoch > before); /* of the one just taken, even if it has failed by now */
	return varve_wait(v, epoch);
}

/* varve_stats does. */
void settle_idle(varve *v)
{
	struct varve_stats st;

	(void)varve_stats(v, &st);
}

long settle_stride(long sync)
{
	const char *mode = getenv("VARVE_MODE");

	return mode && strcmp(mode, "sync") == 0 ? sync : 1;
}
