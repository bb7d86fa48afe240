/* Finds the place of each name's variable by Jinja's scoping rules.
 *
 * In: a template's tree. Out: each name has a place, which is a slot in the frame of this routine or of a routine that
 * contains it. Each scope knows the initial values of its variables. The rules are those of Jinja's compiler. The body
 * of a loop, a block or a macro is a scope; an `if` is not. A variable that is set anywhere in a scope belongs to that
 * scope. If an outer variable has the same name, the scope's variable begins with the outer value. If there is no outer
 * variable, and the scope's variable is read first or is set in an `if`, it begins with the context's value. If it is
 * set first, it begins as undefined. */
#include "base/error.h"
#include "src/language/jinja/template_walk.h"

typedef struct fr_jinja_symbol {
    fr_jinja_name *name;
    struct scope *scope;
    struct fr_jinja_symbol *shadowed; /* symbol of the same name in the scope that contains this scope */
    struct fr_jinja_symbol *next;     /* the next symbol of the same scope */
    fr_jinja_load load;
    bool parameter; /* the symbol is a parameter, whose first value is its argument */
} fr_jinja_symbol;

/* The layout of a routine's frame while the names of the routine are resolved. */
typedef struct frame_layout {
    uint32_t depth, slots;
    bool in_loop; /* break and continue are allowed here */
} frame_layout;

typedef struct scope {
    struct scope *outer;
    frame_layout *layout;
    fr_jinja_symbol *symbols;
} scope;

typedef struct resolver {
    fr_template *template;
    fr_status status;
    scope *scope;     /* the innermost scope */
    bool conditional; /* the current node is within an `if` of the present scope */
    unsigned loops;   /* number of for statements that contain the current node */
    size_t searched;  /* number of nodes that were searched for names such as `loop` (find_read) */
} resolver;

static void keep(resolver *r, fr_status status) {
    if (r->status == FR_OK) r->status = status;
}

static void *take(resolver *r, size_t count, size_t item) {
    void *piece = fr_jinja_bump_take(&r->template->memory, count, item);
    if (!piece) keep(r, fr_template_fail_memory(r->template, 1, &r->template->memory));
    return piece;
}

/* --------------------------------------------------------------------------------------- names that bodies may read */

/* Limit on the searched nodes. A nested body is searched again for each body that contains it. */
#define SEARCHED_MAX 10000000

typedef struct search {
    resolver *resolver;
    const char *word;
    fr_jinja_name *found;
    bool over;
} search;

static void search_node(void *context, fr_jinja_node *node) {
    search *s = context;
    if (++s->resolver->searched > SEARCHED_MAX && s->resolver->status == FR_OK)
        keep(s->resolver,
             fr_template_fail(s->resolver->template, node->line, "blocks nested too often to be searched"));
    if (s->over || s->resolver->status != FR_OK) return;
    if (node->kind == FR_NODE_NAME && fr_jinja_string_is(&node->variable.name->string, s->word)) {
        s->over = true;
        s->found = node->variable.stored ? NULL : node->variable.name;
    } else {
        fr_jinja_visit_children(node, search_node, s);
    }
}

/* Searches a body for a name such as `loop` or `caller`. If the body reads the name before it sets a variable of that
 * name, the loop or macro must provide the variable. NULL: the body does not read the name, or sets it first. */
static fr_jinja_name *find_read(resolver *r, const fr_jinja_nodes *body, const char *word) {
    search s = {.resolver = r, .word = word};
    fr_jinja_visit_all(body, search_node, &s);
    return s.found;
}

/* ---------------------------------------------------------------------------------------------------------- symbols */

static fr_jinja_symbol *define(resolver *r, fr_jinja_name *name, fr_jinja_load_from from, bool parameter) {
    fr_jinja_symbol *symbol = take(r, 1, sizeof *symbol), *outer = name->symbol;
    if (!symbol) return NULL;
    scope *here = r->scope;
    *symbol = (fr_jinja_symbol){
        .name = name, .scope = here, .shadowed = outer, .next = here->symbols, .parameter = parameter};
    symbol->load = (fr_jinja_load){.from = from, .slot = here->layout->slots++, .name = &name->string};
    if (from == FR_LOAD_OUTER)
        symbol->load.outer = (fr_jinja_place){here->layout->depth - outer->scope->layout->depth, outer->load.slot};
    here->symbols = name->symbol = symbol;
    return symbol;
}

/* Declares a parameter and returns its slot. */
static uint32_t declare_parameter(resolver *r, fr_jinja_name *name) {
    fr_jinja_symbol *symbol = name->symbol;
    if (!symbol || symbol->scope != r->scope) symbol = define(r, name, FR_LOAD_NOTHING, true);
    if (!symbol) return 0;
    symbol->parameter = true;
    return symbol->load.slot;
}

static void load(resolver *r, fr_jinja_name *name) {
    if (!name->symbol) define(r, name, FR_LOAD_CONTEXT, false);
}

static void store(resolver *r, fr_jinja_name *name, uint32_t line) {
    if (r->loops > 0 && fr_jinja_string_is(&name->string, "loop"))
        keep(r, fr_template_fail(r->template, line, "an assignment to loop inside of a loop"));
    fr_jinja_symbol *symbol = name->symbol;
    if (symbol && symbol->scope == r->scope) return;
    define(r, name, symbol ? FR_LOAD_OUTER : r->conditional ? FR_LOAD_CONTEXT : FR_LOAD_NOTHING, false);
}

static void declare_targets(resolver *r, fr_jinja_node *target) {
    if (target->kind == FR_NODE_NAME) declare_parameter(r, target->variable.name);
    if (target->kind != FR_NODE_TUPLE) return;
    for (size_t i = 0; i < target->items.count; i++) declare_targets(r, target->items.items[i]);
}

static void store_targets(resolver *r, fr_jinja_node *target) {
    if (target->kind == FR_NODE_NAME) store(r, target->variable.name, target->line);
    if (target->kind == FR_NODE_MEMBER) load(r, target->member.name);
    if (target->kind != FR_NODE_TUPLE) return;
    for (size_t i = 0; i < target->items.count; i++) store_targets(r, target->items.items[i]);
}

/* Records the names that a node uses in its own scope, but not those in scopes inside the node. */
static void analyze(void *context, fr_jinja_node *node) {
    resolver *r = context;
    bool conditional = r->conditional;
    if (r->status != FR_OK) return;
    switch (node->kind) {
    case FR_NODE_NAME: load(r, node->variable.name); break;
    case FR_NODE_SET:
        analyze(r, node->set.value);
        store_targets(r, node->set.target);
        break;
    case FR_NODE_SET_BLOCK: store_targets(r, node->block.target); break;
    case FR_NODE_IF:
        analyze(r, node->choice.branches[0].test);
        r->conditional = true;
        fr_jinja_visit_if(node, analyze, r);
        r->conditional = conditional;
        break;
    case FR_NODE_FOR: analyze(r, node->loop->sequence); break;
    case FR_NODE_MACRO: store(r, node->macro.target->variable.name, node->line); break;
    case FR_NODE_CALL_BLOCK:
        if (node->macro.call) analyze(r, node->macro.call);
        break;
    case FR_NODE_FILTER_BLOCK: analyze(r, node->block.filter); break;
    case FR_NODE_WITH: fr_jinja_visit_all(&node->with.values, analyze, r); break;
    default: fr_jinja_visit_expression(node, analyze, r); break;
    }
}

/* ----------------------------------------------------------------------------------------------------------- scopes */

static void enter_scope(resolver *r, scope *inner, frame_layout *layout) {
    *inner = (scope){.outer = r->scope, .layout = layout};
    r->scope = inner;
    r->conditional = false;
}

/* Leaves a scope; its symbols have no meaning outside of it. result: gets the variables that must be loaded each time
 * the scope is entered. */
static void leave_scope(resolver *r, fr_jinja_scope *result) {
    scope *inner = r->scope;
    size_t count = 0;
    for (const fr_jinja_symbol *symbol = inner->symbols; symbol; symbol = symbol->next) count += !symbol->parameter;
    result->loads = count > 0 ? take(r, count, sizeof *result->loads) : NULL;
    for (const fr_jinja_symbol *symbol = inner->symbols; symbol; symbol = symbol->next) {
        if (result->loads && !symbol->parameter) result->loads[result->count++] = symbol->load;
        symbol->name->symbol = symbol->shadowed;
    }
    r->scope = inner->outer;
}

static frame_layout inner_layout(const resolver *r) {
    return (frame_layout){.depth = r->scope->layout->depth + 1};
}

static fr_jinja_place place_of(const resolver *r, const fr_jinja_name *name) {
    const fr_jinja_symbol *symbol = name->symbol;
    if (!symbol) return (fr_jinja_place){0, 0}; /* after a failure */
    return (fr_jinja_place){r->scope->layout->depth - symbol->scope->layout->depth, symbol->load.slot};
}

/* -------------------------------------------------------------------------------------------------------- resolving */

static void resolve(void *context, fr_jinja_node *node);

static void resolve_block(resolver *r, fr_jinja_node *node) {
    scope inner;
    if (node->block.target) resolve(r, node->block.target);
    enter_scope(r, &inner, r->scope->layout);
    fr_jinja_visit_all(&node->block.body, analyze, r);
    if (node->block.filter) analyze(r, node->block.filter);
    fr_jinja_visit_all(&node->block.body, resolve, r);
    if (node->block.filter) resolve(r, node->block.filter);
    leave_scope(r, &node->block.scope);
}

static void resolve_with(resolver *r, fr_jinja_node *node) {
    scope inner;
    fr_jinja_visit_all(&node->with.values, resolve, r);
    enter_scope(r, &inner, r->scope->layout);
    for (size_t i = 0; i < node->with.targets.count; i++) declare_targets(r, node->with.targets.items[i]);
    fr_jinja_visit_all(&node->with.body, analyze, r);
    fr_jinja_visit_all(&node->with.targets, resolve, r);
    fr_jinja_visit_all(&node->with.body, resolve, r);
    leave_scope(r, &node->with.scope);
}

static bool has_parameter(const fr_jinja_routine *routine, const char *name) {
    for (size_t i = 0; i < routine->parameter_count; i++)
        if (fr_jinja_string_is(&routine->parameters[i]->variable.name->string, name)) return true;
    return false;
}

/* Returns true if the body reads the name `word` and no parameter has this name. The routine must then provide a
 * variable of that name, so the variable gets a place in the routine's frame: *slot. */
static bool provide(resolver *r, const fr_jinja_routine *routine, const char *word, uint32_t *slot) {
    fr_jinja_name *name = has_parameter(routine, word) ? NULL : find_read(r, &routine->body, word);
    if (name) *slot = declare_parameter(r, name);
    return name != NULL;
}

static void provide_special(resolver *r, fr_jinja_routine *routine) {
    routine->caller_declared = has_parameter(routine, "caller");
    routine->takes_caller = provide(r, routine, "caller", &routine->caller_slot);
    routine->takes_keywords = provide(r, routine, "kwargs", &routine->keywords_slot);
    routine->takes_rest = provide(r, routine, "varargs", &routine->rest_slot);
}

static void resolve_routine(resolver *r, fr_jinja_routine *routine) {
    scope inner;
    frame_layout layout = inner_layout(r);
    enter_scope(r, &inner, &layout);
    for (size_t i = 0; i < routine->parameter_count; i++) declare_targets(r, routine->parameters[i]);
    provide_special(r, routine);
    fr_jinja_visit_routine(routine, analyze, r);
    fr_jinja_visit_routine(routine, resolve, r);
    leave_scope(r, &routine->scope);
    routine->slots = layout.slots;
}

/* Copies the target of a loop for the loop's test. The test may run before the body has used the item, so it must not
 * change the variables that the body reads. */
static fr_jinja_node *copy_target(resolver *r, const fr_jinja_node *target) {
    fr_jinja_node *copy = take(r, 1, sizeof *copy);
    if (!copy) return NULL;
    *copy = *target;
    if (target->kind != FR_NODE_TUPLE) return copy;
    copy->items.items = take(r, target->items.count + 1, sizeof *copy->items.items);
    for (size_t i = 0; copy->items.items && i < target->items.count; i++)
        copy->items.items[i] = copy_target(r, target->items.items[i]);
    return copy;
}

static void resolve_loop_test(resolver *r, fr_jinja_for_node *loop, frame_layout *layout) {
    scope inner;
    if (loop->test) loop->test_target = copy_target(r, loop->target);
    if (!loop->test || r->status != FR_OK) return;
    enter_scope(r, &inner, layout);
    declare_targets(r, loop->test_target);
    analyze(r, loop->test);
    resolve(r, loop->test_target);
    resolve(r, loop->test);
    leave_scope(r, &loop->test_scope);
}

static void resolve_loop_body(resolver *r, fr_jinja_for_node *loop, frame_layout *layout) {
    scope inner;
    bool in_loop = layout->in_loop;
    enter_scope(r, &inner, layout);
    layout->in_loop = true;
    fr_jinja_name *name = find_read(r, &loop->body, "loop");
    loop->has_loop = name != NULL;
    if (name) loop->loop_slot = declare_parameter(r, name);
    declare_targets(r, loop->target);
    fr_jinja_visit_all(&loop->body, analyze, r);
    resolve(r, loop->target);
    fr_jinja_visit_all(&loop->body, resolve, r);
    leave_scope(r, &loop->scope);
    layout->in_loop = in_loop;
}

static void resolve_loop_otherwise(resolver *r, fr_jinja_for_node *loop, frame_layout *layout) {
    scope inner;
    enter_scope(r, &inner, layout);
    fr_jinja_visit_all(&loop->otherwise, analyze, r);
    fr_jinja_visit_all(&loop->otherwise, resolve, r);
    leave_scope(r, &loop->otherwise_scope);
}

/* Refuses a target named loop, because no variable of that name may be set within a loop. */
static void refuse_loop(resolver *r, const fr_jinja_node *target) {
    bool tuple = target->kind == FR_NODE_TUPLE;
    if (target->kind == FR_NODE_NAME && fr_jinja_string_is(&target->variable.name->string, "loop"))
        keep(r, fr_template_fail(r->template, target->line, "an assignment to loop inside of a loop"));
    for (size_t i = 0; tuple && i < target->items.count; i++) refuse_loop(r, target->items.items[i]);
}

static void resolve_for(resolver *r, fr_jinja_for_node *loop) {
    refuse_loop(r, loop->target);
    resolve(r, loop->sequence);
    frame_layout own = inner_layout(r), *layout = loop->recursive ? &own : r->scope->layout;
    r->loops++;
    resolve_loop_test(r, loop, layout);
    resolve_loop_body(r, loop, layout);
    resolve_loop_otherwise(r, loop, layout);
    r->loops--;
    if (loop->recursive) loop->recursive->slots = own.slots;
}

static void resolve(void *context, fr_jinja_node *node) {
    resolver *r = context;
    if (r->status != FR_OK) return;
    switch (node->kind) {
    case FR_NODE_NAME: node->variable.place = place_of(r, node->variable.name); break;
    case FR_NODE_MEMBER: node->member.place = place_of(r, node->member.name); break;
    case FR_NODE_FOR: resolve_for(r, node->loop); break;
    case FR_NODE_WITH: resolve_with(r, node); break;
    case FR_NODE_SET_BLOCK:
    case FR_NODE_FILTER_BLOCK: resolve_block(r, node); break;
    case FR_NODE_MACRO:
    case FR_NODE_CALL_BLOCK:
        if (node->macro.target) resolve(r, node->macro.target);
        if (node->macro.call) resolve(r, node->macro.call);
        resolve_routine(r, node->macro.routine);
        break;
    case FR_NODE_BREAK:
    case FR_NODE_CONTINUE:
        if (!r->scope->layout->in_loop)
            keep(r, fr_template_fail(r->template, node->line, "break or continue outside of a loop"));
        break;
    default: fr_jinja_visit_children(node, resolve, r); break;
    }
}

fr_status fr_template_resolve(fr_template *template) {
    resolver r = {.template = template};
    frame_layout layout = {0};
    scope root;
    enter_scope(&r, &root, &layout);
    fr_jinja_visit_all(&template->routine.body, analyze, &r);
    fr_jinja_visit_all(&template->routine.body, resolve, &r);
    leave_scope(&r, &template->routine.scope);
    template->routine.slots = layout.slots;
    return r.status;
}
