// Branches of a conversation: if a message is edited or answered again, the page keeps the old version.
//
// A conversation's "messages" are the branch that is open. A message at which other branches begin too has "branches",
// the rest of the conversation in each of the others, in the order of their creation, and "branch", its own position
// among them.

const take = (message) => {
    const {branches = [], branch = 0} = message;
    delete message.branches;
    delete message.branch;
    return {branches, branch};
};

/** Stores the messages from `at` on as a branch; the next message begins a new branch there. Gives the members for
 *  that message. */
export function setAside(conversation, at) {
    const rest = conversation.messages.splice(at);
    if (rest.length === 0) return {};
    const {branches, branch} = take(rest[0]);
    return {branches: branches.toSpliced(branch, 0, rest), branch: branches.length + 1};
}

/** Opens the branch before or after the open one at a message. */
export function turnTo(conversation, message, by) {
    const at = conversation.messages.indexOf(message), to = (message.branch ?? 0) + by;
    if (at < 0 || to < 0 || to > (message.branches?.length ?? 0)) return false;
    const rest = conversation.messages.splice(at), {branches, branch} = take(message);
    const all = branches.toSpliced(branch, 0, rest), [head, ...others] = all[to];
    conversation.messages.push(Object.assign(head, {branches: all.toSpliced(to, 1), branch: to}), ...others);
    return true;
}

/** Gives a message's number among its branches, counted from 1, and the number of branches. */
export const placeOf = (message) => [(message.branch ?? 0) + 1, (message.branches?.length ?? 0) + 1];
