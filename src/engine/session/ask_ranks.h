/* Asks the other ranks which content they hold, before any of it is placed. */
#ifndef VV_ENGINE_SURVEY_H
#define VV_ENGINE_SURVEY_H

#include "engine/memory/tiles.h"

/* The part of it that must be done before the other ranks can be asked, and the asking; `rc`: what went before, on this rank. */
int vv_survey_run(struct vv_pass *p, int rc);
/* Before anything is fenced: it is coming. */
void vv_survey_expect(struct varve *v);

#endif
