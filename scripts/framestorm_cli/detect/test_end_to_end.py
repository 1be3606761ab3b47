"""The regression bar: six planted bugs of three classes, in walkers that have none else, are found."""



