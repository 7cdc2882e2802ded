enqueue_many default k {} {} {}
drain default 100
depth default
